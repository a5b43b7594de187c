/** Entry point of every worker thread: loads the given actor module and hosts it. */
import * as modules from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'
import type { ThreadData } from './hosting.ts'

const port = parentPort
if (!port) throw new Error('this module is the entry of a worker thread')
// Called before any other import, so that compiled code is cached across starts and shared by the threads.
modules.enableCompileCache()
// A copy as a plain object: Node asks the operating system for each variable that is read, and the YAML library reads one for every token.
process.env = { ...process.env }
const { module, hosting, ...options } = workerData as ThreadData
const { hostOnThread } = (await import(hosting)) as typeof import('./hosting.ts')
await hostOnThread(() => import(module), port as never, options)
