"""An answer as a pydantic object, with its numbers checked against the source, offline.

python examples/structured_output.py
"""

from pydantic import BaseModel

import zlclient


class Delivery(BaseModel):
    company: str
    quarter: str
    cars: int


def main() -> None:
    with zlclient.Client(provider="local") as client:
        prompt = "Extract the delivery.\n\nTesla delivered 386810 cars in Q1."
        reply = client.chat(prompt, output=Delivery, format_policy="raise")
        assert isinstance(reply.parsed, Delivery)
        print(reply.parsed.model_dump_json(indent=2))


if __name__ == "__main__":
    main()
