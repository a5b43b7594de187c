// Brings the oldest and the newest supported Envoy into .cache/envoy/, once.
import { join } from 'node:path'
import { envoyReleases, fetchEnvoy } from '../actors/quickstart/fetch-envoy.ts'

const cache = join(import.meta.dirname, '../.cache/envoy')

/** Fetches what is missing. Resolves with the reason when something is still missing. */
export async function fetchEnvoys() {
  if (process.env.ENVOY_BIN) return undefined
  for (const [series, release] of Object.entries(envoyReleases)) {
    const fault = await fetchEnvoy(release, join(cache, series, 'envoy'), { env: process.env })
    if (fault !== undefined) return `${fault} (or set ENVOY_BIN)`
  }
  return undefined
}
