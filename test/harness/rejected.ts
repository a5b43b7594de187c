/** Resolves with the message of the Error that a promise rejects with. Rejects when the promise resolves. */
export async function rejected(promise: Promise<unknown>): Promise<string> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: Error) => error,
  )
  if (outcome instanceof Error) return outcome.message
  throw new Error(`resolved to ${JSON.stringify(outcome.value)}`)
}
