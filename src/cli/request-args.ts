/** The arguments and flags of the commands `request`. */
import { string } from '@oclif/core/args'
import { toggle } from './flags.ts'

/** Returns the arguments; `body` says what the request body is. */
export const requestArgs = (body: string) => ({
  method: string({ description: 'HTTP method', required: true, ignoreStdin: true }),
  path: string({ description: 'request path', required: true, ignoreStdin: true }),
  body: string({ description: body, ignoreStdin: true }),
})

/** Flags of both. */
export const requestFlags = { json: toggle({ description: 'prints status and body as JSON, and errors too' }) }

/** Returns the method in capitals and the path with its slash. */
export const requestLine = ({ method, path }: { readonly method: string; readonly path: string }) => ({
  method: method.toUpperCase(),
  path: path.startsWith('/') ? path : `/${path}`,
})
