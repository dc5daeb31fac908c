// The pressed button whose effect has not been seen yet.
//
// A command sent while the server is unreachable, or just before, may be lost. It is kept until its effect is seen.
// After a reconnect, it is sent again if it still has the same meaning; otherwise it is dropped.

/** The label of each command's button. */
const LABELS = {
  'retry.now': 'Retry now',
  'retry.abort': 'Give up',
  'chat.stop': 'Stop',
  'chat.retry': 'Try again',
};

/** At most one button at a time; the last one pressed counts. */
export class Press {
  #given = null; // { type, fields, turnId, stage, isLost }

  /**
   * `command(type, fields)` sends a command and returns whether that was possible; `onChange(type)` shows the pressed
   * button.
   */
  constructor({ command, onChange }) {
    Object.assign(this, { command, onChange });
    onChange();
  }

  /** The command that has not taken effect yet. */
  get type() {
    return this.#given?.type;
  }

  /** Whether a message is to be answered again or edited. */
  get isRevision() {
    return this.#given?.fields?.seq !== undefined;
  }

  /** The label of the button whose command waits for the connection. */
  get unsent() {
    return this.#given?.isLost ? LABELS[this.#given.type] : null;
  }

  /** Sends a command. `now`: its context, see `settle`. */
  give(type, fields, { turnId, isRunning, isPending, stage }) {
    this.#given = { type, fields, stage, turnId: isRunning ? turnId : undefined, isLost: true };
    if (!isPending) this.#send();
    this.onChange(type);
  }

  /** The connection was lost, so the command may not have arrived. */
  lose() {
    if (this.#given) this.#given.isLost = true;
  }

  drop() {
    this.#given = null;
    this.onChange();
  }

  /**
   * Drops the command if its effect is seen, and sends a command again that may have been lost. `now`: the last
   * streamed turn and whether it runs; whether one has yet to begin (`isPending`); the state of its retries (`retry`,
   * null if none) and of its step (`stage`); the last turn (`lastTurn`), and the same if it can be repeated (`unfinished`).
   */
  settle(now) {
    if (!this.#given) return;
    if (isOver(this.#given, now)) this.#given = null;
    else if (this.#given.isLost && !now.isPending) this.#send();
    this.onChange(this.type);
  }

  #send() {
    const { type, fields } = this.#given;
    this.#given.isLost = !this.command(type, fields);
  }
}

function isOver({ type, fields, turnId, stage }, now) {
  if (type === 'chat.retry' && fields.seq !== undefined) return now.isRunning || now.lastTurn !== fields.turnId;
  if (type === 'chat.retry') return now.isRunning || now.unfinished !== fields.turnId;
  if (turnId === undefined && now.isPending) return false;
  if (!now.isRunning || (turnId !== undefined && turnId !== now.turnId)) return true;
  if (type === 'retry.now') return stage !== now.stage;
  return type === 'retry.abort' && now.retry === null;
}
