"""Reads calls from standard input, makes them with a Python SDK, and prints the result of each as a line of JSON."""

import json
import sys

GIVEN = json.load(sys.stdin)
BASE = GIVEN["base"]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def messages(call):
    return [{"role": "user", "content": "x" * call.get("size", 5)}]


class OpenAi:
    def client(self, call):
        from openai import OpenAI

        return OpenAI(
            base_url=BASE + "/v1",
            api_key=call["key"],
            max_retries=call.get("retries", 2),
            default_headers={"X-Scenario": call["id"]},
        )

    def chat(self, call):
        it = self.client(call).chat.completions.create(model=call["model"], messages=messages(call))
        return {"content": it.choices[0].message.content, "tokens": it.usage.total_tokens}

    def stream(self, call):
        stream = self.client(call).chat.completions.create(model=call["model"], messages=messages(call), stream=True)
        return {"pieces": [it.choices[0].delta.content for it in stream if it.choices[0].delta.content]}

    def models(self, call):
        return {"ids": [it.id for it in self.client(call).models.list().data]}

    def embeddings(self, call):
        return {"values": self.client(call).embeddings.create(model=call["model"], input="hello").data[0].embedding}

    def tool(self, call):
        tools = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]
        it = self.client(call).chat.completions.create(model=call["model"], messages=messages(call), tools=tools)
        made = it.choices[0].message.tool_calls[0].function
        return {"name": made.name, "arguments": json.loads(made.arguments)}

    def upload(self, call):
        it = self.client(call).files.create(file=("data.jsonl", b"data " * 2000), purpose="assistants")
        return {"id": it.id, "filename": it.filename}


class LangChain:
    def model(self, call):
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(
            base_url=BASE + "/v1",
            api_key=call["key"],
            model=call["model"],
            max_retries=call.get("retries", 2),
            default_headers={"X-Scenario": call["id"]},
        )

    def chat(self, call):
        it = self.model(call).invoke([("user", "x" * call.get("size", 5))])
        return {"content": it.content, "tokens": it.usage_metadata["total_tokens"]}

    def stream(self, call):
        return {"pieces": [it.content for it in self.model(call).stream("hello") if it.content]}

    def embeddings(self, call):
        from langchain_openai import OpenAIEmbeddings

        # Otherwise it first downloads a tokenizer table.
        embeddings = OpenAIEmbeddings(
            base_url=BASE + "/v1",
            api_key=call["key"],
            model=call["model"],
            check_embedding_ctx_length=False,
            default_headers={"X-Scenario": call["id"]},
        )
        return {"values": embeddings.embed_query("hello")}

    def tool(self, call):
        weather = {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}
        made = self.model(call).bind_tools([weather]).invoke("hello").tool_calls[0]
        return {"name": made["name"], "arguments": made["args"]}


class Anthropic:
    def client(self, call):
        from anthropic import Anthropic as Client

        return Client(
            base_url=BASE,
            auth_token=call["key"],
            max_retries=call.get("retries", 2),
            default_headers={"X-Scenario": call["id"]},
        )

    def chat(self, call):
        it = self.client(call).messages.create(model=call["model"], max_tokens=10, messages=messages(call))
        return {"content": it.content[0].text, "tokens": it.usage.output_tokens}

    def stream(self, call):
        with self.client(call).messages.stream(model=call["model"], max_tokens=10, messages=messages(call)) as stream:
            return {"pieces": list(stream.text_stream)}

    def tool(self, call):
        tools = [{"name": "weather", "input_schema": PARAMETERS}]
        it = self.client(call).messages.create(
            model=call["model"], max_tokens=10, messages=messages(call), tools=tools
        )
        return {"name": it.content[0].name, "arguments": it.content[0].input}


def described(error):
    body = getattr(error, "body", None)
    said = body.get("error", body) if isinstance(body, dict) else {}
    if not isinstance(said, dict):
        said = {}
    return {
        "class": type(error).__name__,
        "status": getattr(error, "status_code", None),
        "code": getattr(error, "code", None) or said.get("code"),
        "type": getattr(error, "type", None) or said.get("type"),
        "message": str(error),
    }


SDK = {"openai": OpenAi, "langchain": LangChain, "anthropic": Anthropic}[GIVEN["sdk"]]()
for each in GIVEN["calls"]:
    try:
        became = {"ok": getattr(SDK, each["kind"])(each)}
    except Exception as error:  # The error that a user's program would see.
        became = {"error": described(error)}
    print(json.dumps({"id": each["id"], **became}), flush=True)
