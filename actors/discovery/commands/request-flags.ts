/** The parts of a request that flags describe. */

/** Returns the headers of flags `name:value`, with names in lower case. Throws an Error that names one that cannot be read. */
export function headersOf(given: readonly string[]): { name: string; value: string }[] {
  return given.map((line) => {
    const colon = line.indexOf(':')
    if (colon < 1) throw new Error(`--header: ${JSON.stringify(line.slice(0, 100))} is not <name>:<value>`)
    return { name: line.slice(0, colon).trim().toLowerCase(), value: line.slice(colon + 1).trim() }
  })
}
