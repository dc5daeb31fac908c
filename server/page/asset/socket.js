// The page's only WebSocket. It reconnects automatically.
import { protocols } from './token.js';

const SHORTEST_MS = 500;
const LONGEST_MS = 15_000;

export class Socket {
  #socket = null;
  #failures = 0;
  #timer = 0;

  /** `onMessage(message)`, `onOpen()`, and `onDown()` each time a connection ended or failed. */
  constructor({ onMessage, onOpen, onDown }) {
    Object.assign(this, { onMessage, onOpen, onDown });
    // Reconnects at once when a laptop wakes up or a phone finds its network.
    addEventListener('online', () => this.#hurry());
    document.addEventListener('visibilitychange', () => document.hidden || this.#hurry());
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** Sends a message. Returns whether there is a connection. */
  send(message) {
    if (this.isOpen) this.#socket.send(JSON.stringify(message));
    return this.isOpen;
  }

  connect() {
    clearTimeout(this.#timer);
    const url = new URL('ws', document.baseURI);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    url.hash = '';
    const socket = new WebSocket(url, protocols());
    this.#socket = socket;
    socket.onopen = () => {
      this.#failures = 0;
      this.onOpen();
    };
    socket.onmessage = ({ data }) => {
      let message;
      try {
        message = JSON.parse(data);
      } catch {
        return; // not of our dialect
      }
      this.onMessage(message);
    };
    socket.onclose = () => {
      this.#timer = setTimeout(() => this.connect(), this.#delay());
      this.#failures += 1;
      this.onDown();
    };
  }

  /** Doubles, with jitter so that many pages do not reconnect at once. */
  #delay() {
    const full = Math.min(LONGEST_MS, SHORTEST_MS * 2 ** this.#failures);
    return full * (0.5 + Math.random() / 2);
  }

  #hurry() {
    if (this.#socket?.readyState === WebSocket.CLOSED) this.connect();
  }
}
