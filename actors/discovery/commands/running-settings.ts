/** `pilot-discovery config --running`: the settings of a server that runs. */
import { AdminClient } from '../../../src/cli/admin-client.ts'
import type { Setting, Settings } from '../../../src/cli/settings.ts'
import { type ServerFlags, serverOf, tellReplica } from './asked-server.ts'

/** Asks the server that the flags name. Rejects as {@link AdminClient.asked} does. */
export async function runningSettings(flags: ServerFlags): Promise<Settings> {
  const place = await serverOf(flags)
  const client = new AdminClient(place)
  const { settings, misspelt } = await client.asked(client.rpcs.listSettings({}))
  tellReplica(place)
  return {
    // It runs, so that all of them can be used.
    settings: settings.map(({ name, value, default: standard, origin, problem }) => ({
      name,
      value,
      default: standard,
      origin: origin as Setting['origin'],
      problem,
      isUsable: true,
    })),
    misspelt: misspelt.map(({ name, nearest }) => ({ name, nearest })),
  }
}
