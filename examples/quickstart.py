"""One question over a text, offline: what was sent, what came back, what was changed and checked.

    python examples/quickstart.py

With ANTHROPIC_API_KEY or OPENAI_API_KEY set, leave `provider="local"` out and the same lines ask a real model.
"""

import zlclient

TEXT = "2024年Q1特斯拉交付量为386,810辆，同比下降8.5%。营收213亿美元。"


def main() -> None:
    with zlclient.Client(provider="local") as client:
        reply = client.chat(f"交付量是多少？\n\n{TEXT}", domain="finance", source=TEXT)
        print(reply)
        print(f"route {reply.route}, {reply.usage.output} tokens out, ${reply.cost}, {reply.timings.total:.3f} s")
        for note in reply.adjustments:
            print(f"- {note}")
        for fact in reply.checks["fidelity"].facts:
            print(f"- {fact.text}: {fact.verdict}")

        with client.stream([*reply.messages, {"role": "user", "content": "营收是多少？"}]) as answer:
            for piece in answer:
                print(piece, end="", flush=True)
            print()


if __name__ == "__main__":
    main()
