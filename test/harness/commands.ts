/** The commands under test: `npm test` builds them once (`test/commands.js`); a file that runs by itself has them from source. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = process.env.TEST_COMMANDS ?? fileURLToPath(new URL('../../bin', import.meta.url))

export const discoveryScript = join(folder, 'pilot-discovery.js')
export const agentScript = join(folder, 'pilot-agent.js')
