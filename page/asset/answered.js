// Which model a turn was answered by, where its events do not say.

/** Where that is known: set once. `getTurn(turnId)` resolves to the figures of a sealed turn. */
let getTurn = async () => ({});

export function provide(source) {
  getTurn = source;
}

/** The model; undefined when it is not known. */
export async function modelOf(turnId) {
  return (await getTurn(turnId).catch(() => ({}))).model;
}
