/** The arguments of the commands `request`. */
import { string } from '@oclif/core/args'

/** Returns the arguments; `body` says what the request body is. */
export const requestArgs = (body: string) => ({
  method: string({ description: 'HTTP method', required: true, ignoreStdin: true }),
  path: string({ description: 'request path', required: true, ignoreStdin: true }),
  body: string({ description: body, ignoreStdin: true }),
})

/** Returns the method in capitals and the path with its slash. */
export const requestLine = ({ method, path }: { readonly method: string; readonly path: string }) => ({
  method: method.toUpperCase(),
  path: path.startsWith('/') ? path : `/${path}`,
})
