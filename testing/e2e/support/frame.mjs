// The WebSocket of the scripted server (RFC 6455, text frames only, no extensions).
import { createHash } from 'node:crypto';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** Answers the upgrade request. `protocol` is the selected subprotocol, if any. */
export function accept(request, socket, protocol) {
  const key = createHash('sha1').update(request.headers['sec-websocket-key'] + GUID).digest('base64');
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
  lines.push(`Sec-WebSocket-Accept: ${key}`);
  if (protocol) lines.push(`Sec-WebSocket-Protocol: ${protocol}`);
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
}

/** A text frame of the server: not masked. */
export function encode(text) {
  const body = Buffer.from(text);
  const long = body.length > 0xffff;
  const head = Buffer.alloc(body.length < 126 ? 2 : long ? 10 : 4);
  head[0] = 0x81;
  if (head.length === 2) head[1] = body.length;
  else if (long) {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(body.length), 2);
  } else {
    head[1] = 126;
    head.writeUInt16BE(body.length, 2);
  }
  return Buffer.concat([head, body]);
}

/** Calls `onText` for each frame of the client, and `onClose` for its close frame. */
export function decode(socket, onText, onClose) {
  let rest = Buffer.alloc(0);
  socket.on('data', (data) => {
    rest = Buffer.concat([rest, data]);
    for (let frame; (frame = next(rest)); ) {
      rest = rest.subarray(frame.length);
      if (frame.opcode === 1) onText(frame.text);
      if (frame.opcode === 8) onClose();
    }
  });
}

function next(buffer) {
  if (buffer.length < 6) return null;
  let length = buffer[1] & 0x7f;
  let at = 2;
  if (length === 126) {
    length = buffer.readUInt16BE(2);
    at = 4;
  } else if (length === 127) {
    if (buffer.length < 14) return null;
    length = Number(buffer.readBigUInt64BE(2));
    at = 10;
  }
  if (buffer.length < at + 4 + length) return null;
  const mask = buffer.subarray(at, at + 4);
  const body = buffer.subarray(at + 4, at + 4 + length).map((byte, index) => byte ^ mask[index % 4]);
  return { opcode: buffer[0] & 0x0f, text: Buffer.from(body).toString(), length: at + 4 + length };
}
