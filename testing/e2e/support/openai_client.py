"""OpenAI's client for Python, asked for what the tests want; what it gets is printed as JSON."""

import json
import sys

import openai

url, token, model = sys.argv[1:]
client = openai.OpenAI(api_key=token, base_url=url)


def plain(content="hi", **more):
    """Sends a request that is passed through."""
    asked = {"model": model, "messages": [{"role": "user", "content": content}], **more}
    return client.chat.completions.create(**asked)


def create(content="hi", **more):
    """Sends a request that becomes a turn."""
    return plain(content, extra_body={"everturn": {}}, **more)


def text(stream):
    pieces = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
    return "".join(pieces)


def failure(call):
    try:
        call()
    except openai.APIStatusError as error:
        return [type(error).__name__, error.status_code, error.code]
    return None


WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}

got = {"models": [known.id for known in client.models.list()]}
got["passed"] = [plain().choices[0].message.content, text(plain(stream=True))]
got["whole"] = create().choices[0].message.content
got["streamed"] = text(create(stream=True, stream_options={"include_usage": True}))
called = create("weather?", tools=[WEATHER]).choices[0].message
got["calls"] = [[call.function.name, call.function.arguments] for call in called.tool_calls]
results = [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in called.tool_calls]
messages = [{"role": "user", "content": "weather?"}, called.model_dump(exclude_none=True), *results]
got["answered"] = create(messages=messages, tools=[WEATHER]).choices[0].message.content
key = {"Idempotency-Key": "once-in-python"}
got["once"] = [create(extra_headers=key).choices[0].message.content for _ in range(2)]
stranger = openai.OpenAI(api_key="wrong", base_url=url)
got["errors"] = [
    failure(lambda: create(model="gpt-9")),
    failure(lambda: create(n=2)),
    failure(lambda: stranger.models.list()),
]
print(json.dumps(got))
