"""An MCP server that answers each call by asking for input: `slowly`, without a question, or `eleven` questions at once."""

import json
import sys
import time

question = {"method": "elicitation/create", "params": {"message": "Why?", "requestedSchema": {"type": "object", "properties": {}}}}

for line in sys.stdin:
    asked = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": asked.get("id")}
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        info = {"name": "asks", "version": "1"}
        answer["result"] = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    elif asked["method"] == "tools/list":
        answer["result"] = {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}
    elif asked["method"] == "tools/call":
        answer["result"] = {"resultType": "input_required", "requestState": "state"}
        if "slowly" in sys.argv:
            time.sleep(0.4)
        else:
            answer["result"]["inputRequests"] = {str(at): question for at in range(11)}
    else:
        answer["error"] = {"code": -32601, "message": "there is no such method"}
    print(json.dumps(answer), flush=True)
