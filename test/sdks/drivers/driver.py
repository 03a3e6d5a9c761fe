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
        stream = self.client(call).chat.completions.create(
            model=call["model"], messages=messages(call), stream=True, stream_options={"include_usage": True}
        )
        return {"pieces": [it.choices[0].delta.content for it in stream if it.choices and it.choices[0].delta.content]}

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


class Azure(OpenAi):
    def client(self, call):
        from openai import AzureOpenAI

        return AzureOpenAI(
            azure_endpoint=BASE,
            api_version="2024-10-21",
            api_key=call["key"],
            max_retries=call.get("retries", 2),
            default_headers={"X-Scenario": call["id"]},
        )


class LangChain:
    def model(self, call):
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(
            base_url=BASE + "/v1",
            api_key=call["key"],
            model=call["model"],
            stream_usage=True,
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
    credential = "api_key"

    def client(self, call):
        from anthropic import Anthropic as Client

        return Client(
            base_url=BASE,
            **{self.credential: call["key"]},
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

    def models(self, call):
        return {"ids": [it.id for it in self.client(call).models.list().data]}

    def count(self, call):
        it = self.client(call).messages.count_tokens(model=call["model"], messages=messages(call))
        return {"tokens": it.input_tokens}


class AnthropicWithAuthToken(Anthropic):
    credential = "auth_token"


class Google:
    def models_of(self, call):
        from google import genai

        # By default it does not retry.
        retries = call.get("retries", 0)
        retry_options = {"attempts": retries + 1, "initial_delay": 0.01, "jitter": 0} if retries > 0 else None
        self.client = genai.Client(
            api_key=call["key"],
            http_options={"base_url": BASE, "headers": {"X-Scenario": call["id"]}, "retry_options": retry_options},
        )
        return self.client.models

    def request(self, call):
        return {"model": call["model"], "contents": messages(call)[0]["content"]}

    def chat(self, call):
        it = self.models_of(call).generate_content(**self.request(call))
        return {"content": it.text, "tokens": it.usage_metadata.total_token_count}

    def stream(self, call):
        return {"pieces": [it.text for it in self.models_of(call).generate_content_stream(**self.request(call))]}

    def models(self, call):
        return {"ids": [it.name for it in self.models_of(call).list().page]}

    def embeddings(self, call):
        return {"values": self.models_of(call).embed_content(**self.request(call)).embeddings[0].values}

    def tool(self, call):
        tools = [{"function_declarations": [{"name": "weather", "parameters_json_schema": PARAMETERS}]}]
        it = self.models_of(call).generate_content(**self.request(call), config={"tools": tools})
        return {"name": it.function_calls[0].name, "arguments": it.function_calls[0].args}

    def count(self, call):
        return {"tokens": self.models_of(call).count_tokens(**self.request(call)).total_tokens}


def of_google(error):
    said = error.details.get("error", {})
    reasons = [it["metadata"]["code"] for it in said.get("details", []) if "metadata" in it]
    return {"status": error.code, "code": reasons[0] if reasons else None, "type": error.status}


def of_others(error):
    body = getattr(error, "body", None)
    if not isinstance(body, dict):
        body = {}
    said = body.get("error", body)
    if not isinstance(said, dict):
        said = {}
    return {
        "status": getattr(error, "status_code", None),
        "code": getattr(error, "code", None) or said.get("code") or body.get("code"),
        "type": getattr(error, "type", None) or said.get("type"),
    }


def described(error):
    is_of_google = type(error).__module__ == "google.genai.errors"
    told = of_google(error) if is_of_google else of_others(error)
    return {"class": type(error).__name__, **told, "message": str(error)}


SDK = {
    "openai": OpenAi,
    "azure": Azure,
    "langchain": LangChain,
    "anthropic": Anthropic,
    "anthropic-auth-token": AnthropicWithAuthToken,
    "google": Google,
}[GIVEN["sdk"]]()
for each in GIVEN["calls"]:
    try:
        became = {"ok": getattr(SDK, each["kind"])(each)}
    except Exception as error:  # The error that a user's program would see.
        became = {"error": described(error)}
    print(json.dumps({"id": each["id"], **became}), flush=True)
