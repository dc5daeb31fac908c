// Why a call waits, in words.

const REASONS = {
  hint: 'the provider said when to ask again',
  requests: 'the provider’s limit on requests is used up',
  tokens: 'the provider’s limit on tokens has no room for this call',
  rate: 'the provider was refusing calls at this rate',
  concurrency: 'the provider was refusing this many calls at once',
  refused: 'the provider refused another call',
  probe: 'another call is finding out whether the provider answers again',
  ramp: 'calls are started gradually',
  line: 'other calls came first',
  offline: 'the provider cannot be reached from here',
};

/** Returns why a call waits; `undefined` if that is not known. */
export function whyItWaits(because) {
  return REASONS[because];
}
