// The button that was pressed and whose effect has not been seen yet.
//
// A command that is given while the server is away, or just before it goes, may be lost. It is kept until its effect is
// seen: after a reconnect it is given again where it still means the same, else it is dropped.

/** What each command is called on its button. */
const LABELS = {
  'retry.now': 'Retry now',
  'retry.abort': 'Cancel',
  'chat.stop': 'Stop',
  'chat.retry': 'Try again',
};

/** At most one button at a time: the last one pressed counts. */
export class Press {
  #given = null; // { type, fields, turnId, stage, isLost }

  /** `command(type, fields)` sends a command and returns whether that was possible; `onChange(type)` shows what is pressed. */
  constructor({ command, onChange }) {
    Object.assign(this, { command, onChange });
    onChange();
  }

  /** The command whose effect is still to come. */
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

  /** Gives a command. `now`: what it is about, see `settle`. */
  give(type, fields, { turnId, isRunning, isPending, stage }) {
    this.#given = { type, fields, stage, turnId: isRunning ? turnId : undefined, isLost: true };
    if (!isPending) this.#send();
    this.onChange(type);
  }

  /** There is no connection: the command may not have arrived. */
  lose() {
    if (this.#given) this.#given.isLost = true;
  }

  drop() {
    this.#given = null;
    this.onChange();
  }

  /**
   * Drops the command when its effect is seen, and gives one again that may be lost. `now`: the last turn that was
   * streamed and whether it runs; whether one is still to begin (`isPending`); where its retries are (`retry`, null
   * without any) and where its step is (`stage`); the last turn when it can be tried again (`unfinished`).
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
  if (type === 'chat.retry' && fields.seq !== undefined) return now.isRunning;
  if (type === 'chat.retry') return now.isRunning || now.unfinished !== fields.turnId;
  if (turnId === undefined && now.isPending) return false;
  if (!now.isRunning || (turnId !== undefined && turnId !== now.turnId)) return true;
  if (type === 'retry.now') return stage !== now.stage;
  return type === 'retry.abort' && now.retry === null;
}
