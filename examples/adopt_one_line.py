"""The shaping for SDK clients that an application already has, one line each; here against the local server.

python examples/adopt_one_line.py
"""

import anthropic
import httpx2
import openai

import zlclient
from zlclient.serving import transport


def main() -> None:
    http = httpx2.Client(transport=transport())
    question = [{"role": "user", "content": "交付\u200b量是多少？\n\n2024年Q1交付量为386810辆。"}]

    claude = anthropic.Anthropic(
        api_key="offline", http_client=http, middleware=[zlclient.middleware(domain="finance")]
    )
    message = claude.messages.create(model="claude-sonnet-5-5", max_tokens=200, messages=question)  # pyright: ignore
    print(message.content[0].text)  # pyright: ignore

    gpt = zlclient.shaped(openai.OpenAI(api_key="offline", http_client=http), domain="finance")
    completion = gpt.chat.completions.create(model="gpt-6.1-sol", messages=question)  # pyright: ignore
    print(completion.choices[0].message.content)


if __name__ == "__main__":
    main()
