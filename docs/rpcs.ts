/** Makes the tables of RPCs of `docs/reference.md` from the comments and messages of the project's own schemas. */
import { readFileSync } from 'node:fs'

/** A method of a service: its name, the fields of its request, and what its comment says. */
interface Method {
  readonly name: string
  readonly asks: readonly string[]
  readonly about: string
}

const textOf = (comment: string): string =>
  comment
    .split('\n')
    .map((line) => line.replace(/^\s*\/\/ ?/, ''))
    .join(' ')
    .trim()

/** Returns the fields of a message of a schema, without those of messages within it. */
function fieldsOf(schema: string, message: string): string[] {
  const body = new RegExp(`^message ${message} \\{\\n([\\s\\S]*?)^\\}`, 'm').exec(schema)?.[1] ?? ''
  return [...body.matchAll(/^ {2}(?:optional |repeated )?[\w.]+ (\w+) = \d+/gm)].map(([, field = '']) => field)
}

/** Returns the methods of all services of a schema, below `protocols/proto/`. Throws an Error for one without a comment. */
export function methodsOf(path: string): Method[] {
  const schema = readFileSync(new URL(`../protocols/proto/${path}`, import.meta.url), 'utf8')
  return [...schema.matchAll(/((?:^ {2}\/\/.*\n)*)^ {2}rpc (\w+)\((\w+)\) returns /gm)].map(([, comment = '', name = '', request = '']) => {
    if (comment === '') throw new Error(`${path}: ${name} has no comment`)
    return { name, asks: fieldsOf(schema, request), about: textOf(comment) }
  })
}
