// The model that answered a turn, if the turn's events do not name it.

/** The source of this information, set once. `getTurn(turnId)` resolves to the metrics of a sealed turn. */
let getTurn = async () => ({});

export function provide(source) {
  getTurn = source;
}

/** The model; undefined if it is not known. */
export async function modelOf(turnId) {
  return (await getTurn(turnId).catch(() => ({}))).model;
}
