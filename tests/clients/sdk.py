"""The official Python SDK as a client of nexus: does what its test wants of every client, and
prints what it saw as one line of JSON.

usage: python sdk.py WIRE TARGET    (TARGET: {"url", "token"} or {"command", "args", "env"})
"""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.types import Implementation


def dump(value):
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


async def look(wire, transport):
    # The newest wire is what it finds by itself.
    mode = "legacy" if wire == "2025-11-25" else "auto"
    own = Implementation(name="python-sdk", version="1")
    async with Client(transport, mode=mode, client_info=own) as client:
        saw = {"wire": client.protocol_version}
        info = client.server_info
        saw["server"] = info.name if info else None
        saw["tools"] = [tool.name for tool in (await client.list_tools()).tools]

        async def call(name, **arguments):
            return dump(await client.call_tool(name, arguments))

        saw["sent"] = await call("send_message", message=f"from python, {wire}")
        saw["read"] = await call("read_messages", latest=True, count=1)
        saw["refused"] = await call("send_message", message="")
        saw["document"] = await call("sync_global_doc", docId="sdk", title="SDK", content="# text")
        resources = await client.list_resources()
        saw["resources"] = [str(resource.uri) for resource in resources.resources]
        templates = await client.list_resource_templates()
        saw["templates"] = [it.uri_template for it in templates.resource_templates]
        text = await client.read_resource("nexus://documents/sdk")
        saw["text"] = text.contents[0].text
        try:
            saw["missing"] = dump(await client.read_resource("nexus://documents/none"))
        except MCPError as error:
            saw["missing"] = error.error.code
        saw["prompts"] = [prompt.name for prompt in (await client.list_prompts()).prompts]
        saw["prompt"] = (await client.get_prompt("use-nexus")).messages[0].content.text
        print(json.dumps(saw))


async def main():
    wire, target = sys.argv[1], json.loads(sys.argv[2])
    if "url" in target:
        headers = {"authorization": f"Bearer {target['token']}"}
        async with create_mcp_http_client(headers=headers) as http:
            await look(wire, streamable_http_client(target["url"], http_client=http))
    else:
        await look(wire, stdio_client(StdioServerParameters(**target)))


asyncio.run(main())
