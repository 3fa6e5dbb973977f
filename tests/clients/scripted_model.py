#!/usr/bin/env python3
"""A model that follows a script, so that real MCP clients can be tested without one.

Claude Code and Codex run as they are; only the model behind them is this program, on loopback. What
it "says" comes from a file with a JSON list of steps, one for each request that offers tools:

  {"tool": "mcp__n2n-nexus__peers", "input": {}}                      calls a tool (Claude Code)
  {"tool": "peers", "namespace": "mcp__n2n_nexus", "input": {}}       calls a tool (Codex)
  {"text": "done"}                                                    says something; the turn ends

Any step may also have
  "expect": "REGEX"        the newest tool result must match, or the step is not taken and the
                           script is over: the model says so, and the log has "mismatch"
  "wait_file": "PATH"      answer only once this file exists, at most "wait_seconds" (120): so a
                           test can kill a node between two steps
  "touch": "PATH"          make this file when the step is reached: so a test knows how far it is

Served: POST /v1/messages (whole and streamed), POST /v1/messages/count_tokens, POST /v1/responses
(streamed). A request without tools, such as one for a title, takes no step. Each request is one
line of --log: {"at", "path", "step", "answer", "result", "mismatch"?, "tools", "instructions",
"input"}, where "result" is the newest tool result as the client passed it on.

  scripted_model.py --steps STEPS.json [--log LOG.jsonl] [--port 0] [--seconds 900]

prints `listening on http://127.0.0.1:PORT` and serves until it is ended or its seconds are over.
"""

import argparse
import itertools
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WAIT_SECONDS = 120


def text_of(content):
    """Flattens what clients put into a content field: a string, or blocks with text in them."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(block) for block in content)
    if isinstance(content, dict):
        for key in ("text", "content", "output"):
            if key in content:
                return text_of(content[key])
    return json.dumps(content, ensure_ascii=False)


def newest_result(request):
    """The newest tool result in a request of either API, as text; None before the first."""
    newest = None
    for message in request.get("messages") or []:
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_result":
                newest = text_of(block.get("content"))
    items = request.get("input")
    for item in items if isinstance(items, list) else []:
        if item.get("type") in ("function_call_output", "custom_tool_call_output"):
            newest = text_of(item.get("output"))
    return newest


class Script:
    """The steps, and how far they are taken."""

    def __init__(self, steps, log_path):
        self.steps = steps
        self.log_path = log_path
        self.taken = 0
        self.failed = None
        self.lock = threading.Lock()

    def answer(self, path, request):
        """The step that answers this request; waits if the step says so."""
        result = newest_result(request)
        number, step, mismatch = self._next(request, result)
        if mismatch is None and "touch" in step:
            with open(step["touch"], "a", encoding="utf-8"):
                pass
        if mismatch is None and "wait_file" in step:
            mismatch = self._wait(number, step)
        if mismatch is not None:
            step = {"text": mismatch}
        self._write(path, request, number, step, result, mismatch)
        return step

    def _next(self, request, result):
        with self.lock:
            if not request.get("tools"):
                return None, {"text": "ok"}, None
            if self.failed is not None:
                return None, {}, self.failed
            if self.taken >= len(self.steps):
                return None, {"text": "the script is over"}, None
            number = self.taken
            self.taken += 1
            step = self.steps[number]
            wanted = step.get("expect")
            if wanted is not None and re.search(wanted, result or "", re.DOTALL) is None:
                self.failed = "step %d: %r is not in the result %r" % (number, wanted, result)
                return number, {}, self.failed
            return number, step, None

    def _wait(self, number, step):
        end = time.monotonic() + step.get("wait_seconds", WAIT_SECONDS)
        while not os.path.exists(step["wait_file"]):
            if time.monotonic() > end:
                with self.lock:
                    self.failed = "step %d: %s did not appear" % (number, step["wait_file"])
                return self.failed
            time.sleep(0.05)
        return None

    def _write(self, path, request, number, step, result, mismatch):
        if not self.log_path:
            return
        line = {
            "at": time.time(),
            "path": path,
            "step": number,
            "answer": step,
            "result": result,
            "tools": [tool.get("name") for tool in request.get("tools") or []],
            "instructions": request.get("system") or request.get("instructions"),
            "input": request.get("messages") or request.get("input"),
        }
        if mismatch is not None:
            line["mismatch"] = mismatch
        with self.lock, open(self.log_path, "a", encoding="utf-8") as log:
            log.write(json.dumps(line, ensure_ascii=False) + "\n")


class Ids:
    """Ids that no two answers of this process share, nor two processes."""

    counter = itertools.count()

    @classmethod
    def make(cls, kind):
        return "%s_%x%x%x" % (kind, int(time.time() * 1000), os.getpid(), next(cls.counter))


def anthropic_message(request, step):
    """A whole message of the Messages API."""
    if "tool" in step:
        block = {
            "type": "tool_use",
            "id": Ids.make("toolu"),
            "name": step["tool"],
            "input": step.get("input", {}),
        }
    else:
        block = {"type": "text", "text": step["text"]}
    return {
        "id": Ids.make("msg"),
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "scripted"),
        "content": [block],
        "stop_reason": "tool_use" if "tool" in step else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def anthropic_events(message):
    """The same message as the events of a stream."""
    block = message["content"][0]
    if block["type"] == "tool_use":
        empty = dict(block, input={})
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        empty = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    begin = dict(message, content=[], stop_reason=None)
    yield {"type": "message_start", "message": begin}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": end, "usage": message["usage"]}
    yield {"type": "message_stop"}


def openai_events(request, step):
    """The events of a stream of the Responses API."""
    if "tool" in step:
        item = {
            "type": "function_call",
            "id": Ids.make("fc"),
            "call_id": Ids.make("call"),
            "name": step["tool"],
            "arguments": json.dumps(step.get("input", {})),
            "status": "completed",
        }
        if "namespace" in step:
            item["namespace"] = step["namespace"]
    else:
        part = {"type": "output_text", "text": step["text"], "annotations": []}
        item = {
            "type": "message",
            "id": Ids.make("msg"),
            "role": "assistant",
            "content": [part],
            "status": "completed",
        }
    response = {
        "id": Ids.make("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "model": request.get("model", "scripted"),
        "status": "in_progress",
        "output": [],
    }
    usage = {
        "input_tokens": 1,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 2,
    }
    begun = dict(item, status="in_progress")
    done = dict(response, status="completed", output=[item], usage=usage)
    yield {"type": "response.created", "response": response}
    yield {"type": "response.output_item.added", "output_index": 0, "item": begun}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": done}


class Handler(BaseHTTPRequestHandler):
    """Both APIs."""

    protocol_version = "HTTP/1.1"
    script = None

    def log_message(self, *_):
        """Standard error stays free: what was asked is in the log."""

    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def stream(self, events):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            frame = "event: %s\ndata: %s\n\n" % (event["type"], json.dumps(event))
            self.wfile.write(frame.encode())
        self.close_connection = True

    def do_GET(self):
        """Clients look for models or for signs of life; nothing they need is there."""
        self.reply(200, {"object": "list", "data": []})

    do_HEAD = do_GET

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.split("?")[0]
        try:
            request = json.loads(body or b"{}")
        except ValueError:
            self.reply(400, {"error": {"type": "invalid_request_error", "message": "not JSON"}})
            return
        if path.endswith("/messages/count_tokens"):
            self.reply(200, {"input_tokens": 1})
        elif path.endswith("/messages"):
            message = anthropic_message(request, self.script.answer(path, request))
            if request.get("stream"):
                self.stream(anthropic_events(message))
            else:
                self.reply(200, message)
        elif path.endswith("/responses"):
            self.stream(openai_events(request, self.script.answer(path, request)))
        else:
            self.reply(200, {})


def main():
    parser = argparse.ArgumentParser(description="A model that follows a script.")
    parser.add_argument("--steps", required=True, help="file with the list of steps")
    parser.add_argument("--log", help="file to append one line a request to")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--seconds", type=float, default=900, help="how long to serve")
    options = parser.parse_args()
    with open(options.steps, encoding="utf-8") as source:
        Handler.script = Script(json.load(source), options.log)
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.daemon_threads = True
    end = threading.Timer(options.seconds, server.shutdown)
    end.daemon = True
    end.start()
    print("listening on http://127.0.0.1:%d" % server.server_address[1], flush=True)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
