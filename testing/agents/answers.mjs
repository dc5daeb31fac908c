// The least that each vendor's clients accept as a complete streamed answer.

const data = (value) => `data: ${JSON.stringify(value)}\n\n`;
const event = (value) => `event: ${value.type}\n${data(value)}`;

const messages = (text, model) =>
  [
    { type: "message_start", message: { id: "msg_1", type: "message", role: "assistant", model, content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 7, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 5 } },
    { type: "message_stop" },
  ].map(event);

const responses = (text, model) => {
  const item = { type: "message", id: "msg_1", role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] };
  const usage = { input_tokens: 7, output_tokens: 5, total_tokens: 12, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } };
  const response = (more) => ({ id: "resp_1", object: "response", created_at: 1, model, output: [], ...more });
  return [
    { type: "response.created", response: response({ status: "in_progress" }) },
    { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress", content: [] } },
    { type: "response.output_text.delta", item_id: "msg_1", output_index: 0, content_index: 0, delta: text },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: response({ status: "completed", output: [item], usage }) },
  ].map(event);
};

const chat = (text, model) => {
  const chunk = (delta, finish_reason = null) => data({ id: "c", object: "chat.completion.chunk", created: 1, model, choices: [{ index: 0, delta, finish_reason }] });
  return [chunk({ role: "assistant", content: "" }), chunk({ content: text }), chunk({}, "stop"), "data: [DONE]\n\n"];
};

// The answers by the path that is called.
export const answers = [
  [/\/v1\/messages$/, messages],
  [/\/responses$/, responses],
  [/\/chat\/completions$/, chat],
];

// An answer that asks the agent to write a file, by a tool that it offered; undefined if this request offers none.
export function toolCall(path, { file, text }, { model, tools = [] }) {
  const offers = (name) => tools.some((tool) => (tool.name ?? tool.function?.name) === name);
  const shell = `printf %s '${text}' > '${file}'`;
  const bash = ["Bash", "bash"].find(offers);
  if (/\/v1\/messages$/.test(path) && bash) {
    const input = JSON.stringify({ command: shell, description: "Write a file" });
    return [
      { type: "message_start", message: { id: "msg_0", type: "message", role: "assistant", model, content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 7, output_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "toolu_1", name: bash, input: {} } },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: input.slice(0, 9) } },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: input.slice(9) } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 5 } },
      { type: "message_stop" },
    ].map(event);
  }
  if (/\/chat\/completions$/.test(path) && bash) {
    const words = JSON.stringify({ command: shell, description: "Write a file" });
    const chunk = (delta, finish_reason = null) => data({ id: "c", object: "chat.completion.chunk", created: 1, model, choices: [{ index: 0, delta, finish_reason }] });
    const piece = (more) => chunk({ tool_calls: [{ index: 0, ...more }] });
    return [
      piece({ id: "call_1", type: "function", function: { name: bash, arguments: "" } }),
      piece({ function: { arguments: words.slice(0, 9) } }),
      piece({ function: { arguments: words.slice(9) } }),
      chunk({}, "tool_calls"),
      "data: [DONE]\n\n",
    ];
  }
  if (/\/responses$/.test(path)) {
    // codex offers one tool that runs programs, which call the others.
    const input = `text(await tools.exec_command(${JSON.stringify({ cmd: shell })}));`;
    const item = { type: "custom_tool_call", id: "ctc_1", call_id: "call_1", name: "exec", input, status: "completed" };
    const usage = { input_tokens: 7, output_tokens: 5, total_tokens: 12 };
    const response = (more) => ({ id: "resp_0", object: "response", created_at: 1, model, output: [], ...more });
    return [
      { type: "response.created", response: response({ status: "in_progress" }) },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: response({ status: "completed", output: [item], usage }) },
    ].map(event);
  }
}
