# SPDX-License-Identifier: MIT
"""A stand-in for the APIs of three models: stand_in.py FILE [COMMAND…]. Each request is answered with a call of the
tool that runs shell commands, with the first COMMAND whose result the request does not have, and then with the text
"done". FILE gets a line of JSON for each request to a model: its credential, and the results that it has. The first
line of standard output is the port, on loopback.

    Anthropic   POST /v1/messages, as a stream
    OpenAI      POST /v1/responses, as a stream; WebSockets are refused
    Gemini      POST /v1beta/models/…:streamGenerateContent
"""
import http.server
import json
import sys
import threading

COMMANDS = sys.argv[2:] or ["echo from the jail > made.txt; cat made.txt; cat ~/.ssh/id_rsa"]
# How tools end that run commands, and their arguments. The first is brig mcp's, which an agent has beside its own.
TOOLS = {
    "run_command": lambda command: {"command": command},
    "Bash": lambda command: {"command": command, "description": "Run it", "timeout": 60000},
    "exec_command": lambda command: {"cmd": command, "yield_time_ms": 30000},
    "run_shell_command": lambda command: {"command": command},
}
CREDENTIALS = "authorization", "x-api-key", "x-goog-api-key"

lock = threading.Lock()


def list_tools(request):
    """Pairs of a tool's name and of its namespace or "", wherever this API has its list of tools."""
    for tool in request.get("tools") or []:
        for item in tool.get("functionDeclarations") or tool.get("tools") or [tool]:
            yield item.get("name", ""), tool["name"] if item is not tool and "name" in tool else ""


def next_call(request, results):
    """The name, the namespace and the arguments of the next call, or None."""
    tools = list(list_tools(request))
    for end, arguments in TOOLS.items():
        for name, space in tools if len(results) < len(COMMANDS) else []:
            if name.endswith(end):
                return name, space, arguments(COMMANDS[len(results)])
    return None


def anthropic(request):
    results = [part for message in request["messages"] if isinstance(message["content"], list)
               for part in message["content"] if part.get("type") == "tool_result"]
    call = next_call(request, results)
    yield "message_start", {"message": {
        "id": f"msg_{len(results)}", "type": "message", "role": "assistant", "model": request["model"], "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}}
    if call:
        block = {"type": "tool_use", "id": f"toolu_{len(results)}", "name": call[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[2])}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}
    yield "content_block_start", {"index": 0, "content_block": block}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    reason = "tool_use" if block["type"] == "tool_use" else "end_turn"
    yield "message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 1}}
    yield "message_stop", {}
    return results


def openai(request):
    results = [item for item in request["input"] if item.get("type") == "function_call_output"]
    call = next_call(request, results)
    if call:
        item = {"type": "function_call", "id": f"fc_{len(results)}", "call_id": f"call_{len(results)}", "name": call[0],
                "status": "completed", "arguments": json.dumps(call[2]), **({"namespace": call[1]} if call[1] else {})}
    else:
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "done", "annotations": []}]}
    yield "response.created", {"response": {"id": "resp_1"}}
    yield "response.output_item.done", {"output_index": 0, "item": item}
    yield "response.completed", {"response": {"id": "resp_1", "output": [item], "usage": {
        "input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None,
        "total_tokens": 2}}}
    return results


def gemini(request):
    results = [part["functionResponse"] for content in request["contents"] for part in content.get("parts") or []
               if "functionResponse" in part]
    call = next_call(request, results)
    part = {"functionCall": {"name": call[0], "args": call[2]}} if call else {"text": "done"}
    yield None, {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                 "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
    return results


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        # 426: Codex then uses HTTP at once.
        self.answer(426 if self.headers["Upgrade"] else 404, "application/json", b"{}")

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        path = self.path.partition("?")[0]
        api = (anthropic if path.endswith("/messages") else openai if path.endswith("/responses")
               else gemini if path.endswith("enerateContent") else None)
        if not api:
            return self.do_GET()
        body, results, events = [], [], api(request)
        while True:
            try:
                name, data = next(events)
            except StopIteration as end:
                results = end.value
                break
            data = {"type": name, **data} if name else data
            body.append((f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n")
        sent = [self.headers[name] for name in CREDENTIALS if self.headers[name]]
        with lock, open(sys.argv[1], "a") as file:
            file.write(json.dumps({"path": path, "credentials": sent, "results": results}) + "\n")
        if api is gemini and not path.endswith(":streamGenerateContent"):
            self.answer(200, "application/json", body[0].partition("data: ")[2].encode())
        elif api is anthropic and not request.get("stream"):
            self.answer(400, "application/json", b'{"type":"error","error":{"type":"invalid_request_error","message":"no"}}')
        else:
            self.answer(200, "text/event-stream", "".join(body).encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
