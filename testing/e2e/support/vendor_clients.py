"""Anthropic's and OpenAI's clients for Python, each asked once, whole or streamed; what it reads is printed."""

import sys

way, url, key, claude, gpt = sys.argv[1:]

if way.startswith("messages"):
    import anthropic

    messages = anthropic.Anthropic(api_key=key, base_url=url, max_retries=0).messages
    asked = {"model": claude, "max_tokens": 64, "messages": [{"role": "user", "content": "Say it."}]}
    if way == "messages":
        print(messages.create(**asked).content[0].text)
    else:
        with messages.stream(**asked) as stream:
            print(stream.get_final_text())
else:
    import openai

    responses = openai.OpenAI(api_key=key, base_url=f"{url}/v1", max_retries=0).responses
    if way == "responses":
        print(responses.create(model=gpt, input="Say it.").output_text)
    else:
        with responses.stream(model=gpt, input="Say it.") as stream:
            print(stream.get_final_response().output_text)
