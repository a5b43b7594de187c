/** Paths and URLs. */
import { type Functions, templateFunction } from '../function.ts'
import { fail, typeName, type Value } from '../values.ts'

/** The shortest path that means the same (Go's `path.Clean`). */
function clean(path: string): string {
  if (path === '') return '.'
  const isRooted = path.startsWith('/')
  const kept: string[] = []
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue
    if (part !== '..') kept.push(part)
    else if (kept.length > 0 && kept.at(-1) !== '..') kept.pop()
    else if (!isRooted) kept.push('..')
  }
  return (isRooted ? '/' : '') + kept.join('/') || '.'
}

function base(path: string): string {
  if (path === '') return '.'
  let end = path.length
  while (end > 0 && path[end - 1] === '/') end--
  return path.slice(0, end).split('/').at(-1) || '/'
}

const directory = (path: string): string => clean(path.slice(0, path.lastIndexOf('/') + 1))

function extension(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1)
  return name.includes('.') ? name.slice(name.lastIndexOf('.')) : ''
}

const onPaths = {
  base: templateFunction(['string'], (_, path) => base(path)),
  dir: templateFunction(['string'], (_, path) => directory(path)),
  clean: templateFunction(['string'], (_, path) => clean(path)),
  ext: templateFunction(['string'], (_, path) => extension(path)),
  isAbs: templateFunction(['string'], (_, path) => path.startsWith('/')),
}

function unescaped(text: string, what: string): string {
  if (/%(?![\da-fA-F]{2})/.test(text)) return fail(`unable to parse url: invalid URL escape in the ${what}`)
  try {
    return decodeURIComponent(text)
  } catch {
    return fail(`unable to parse url: an escape in the ${what} is not UTF-8`)
  }
}

/** Splits a URL into its parts (Go's `url.Parse`). */
function parsed(text: string): Map<string, Value> {
  if (/[\x00-\x20\x7f]/.test(text.replaceAll(' ', ''))) return fail('unable to parse url: invalid control character in URL')
  const [beforeFragment = '', ...fragment] = text.split('#')
  const match = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(beforeFragment)
  const scheme = match?.[1]?.toLowerCase() ?? ''
  let rest = beforeFragment.slice(match?.[0].length ?? 0)
  if (!match && rest.startsWith(':')) return fail('unable to parse url: missing protocol scheme')
  const mark = rest.indexOf('?')
  const query = mark < 0 ? '' : rest.slice(mark + 1)
  if (mark >= 0) rest = rest.slice(0, mark)
  let [opaque, host, userinfo] = ['', '', '']
  if (scheme !== '' && !rest.startsWith('/')) {
    opaque = rest
    rest = ''
  } else if (rest.startsWith('//') && (scheme !== '' || !rest.startsWith('///'))) {
    const end = rest.indexOf('/', 2)
    const authority = rest.slice(2, end < 0 ? undefined : end)
    rest = end < 0 ? '' : rest.slice(end)
    const at = authority.lastIndexOf('@')
    userinfo = at < 0 ? '' : authority.slice(0, at)
    host = authority.slice(at + 1)
    checkHost(host)
  } else if (scheme === '' && /^[^/]*:/.test(rest)) return fail('unable to parse url: first path segment in URL cannot contain colon')
  return new Map<string, Value>([
    ['scheme', scheme],
    ['host', unescaped(host, 'host')],
    ['hostname', hostname(host)],
    ['path', unescaped(rest, 'path')],
    ['query', query],
    ['opaque', opaque],
    ['fragment', unescaped(fragment.join('#'), 'fragment')],
    ['userinfo', userinfo],
  ])
}

function checkHost(host: string): void {
  const port = host.startsWith('[') ? host.slice(host.indexOf(']') + 1) : host.includes(':') ? host.slice(host.lastIndexOf(':')) : ''
  if (host.startsWith('[') && !host.includes(']')) fail("unable to parse url: missing ']' in host")
  if (!/^(:\d*)?$/.test(port)) fail(`unable to parse url: invalid port ${JSON.stringify(port)} after host`)
  if (/[ "<>\\^`{|}]/.test(host)) fail('unable to parse url: invalid character in host name')
}

const hostname = (host: string): string => (host.startsWith('[') ? host.slice(1, host.indexOf(']')) : host.replace(/:\d*$/, ''))

const pathEscape = (text: string): string =>
  encodeURI(text.toWellFormed()).replaceAll(/[?#]/g, encodeURIComponent).replaceAll('%5B', '[').replaceAll('%5D', ']')

/** Joins the parts of a URL (Go's `URL.String`). */
function joined(parts: ReadonlyMap<string, Value>): string {
  const part = (name: string): string => {
    const value = parts.get(name)
    if (value === undefined) return ''
    return typeof value === 'string' ? value : fail(`unable to parse ${name} key, must be of type string, but ${typeName(value)} found`)
  }
  const [scheme, host, path, query, opaque, fragment, userinfo] = ['scheme', 'host', 'path', 'query', 'opaque', 'fragment', 'userinfo'].map(part) as [
    ...[string, string, string, string, string, string, string],
  ]
  let text = scheme === '' ? '' : `${scheme}:`
  if (opaque !== '') text += opaque
  else {
    if (scheme !== '' || host !== '' || userinfo !== '') {
      if (host !== '' || path !== '' || userinfo !== '') text += '//'
      if (userinfo !== '') text += `${userinfo}@`
      text += host
    }
    const escaped = pathEscape(path).replaceAll(/[[\]]/g, (letter) => encodeURIComponent(letter))
    if (escaped !== '' && !escaped.startsWith('/') && host !== '') text += '/'
    if (text === '' && /^[^/]*:/.test(escaped)) text += './'
    text += escaped
  }
  if (query !== '') text += `?${query}`
  return fragment === '' ? text : `${text}#${pathEscape(fragment).replaceAll(/[[\]]/g, (letter) => encodeURIComponent(letter))}`
}

/** The functions by name. Those for paths of files are those for paths: templates are written for Linux. */
export const pathFunctions: Functions = new Map(
  Object.entries({
    ...onPaths,
    osBase: onPaths.base,
    osDir: onPaths.dir,
    osClean: onPaths.clean,
    osExt: onPaths.ext,
    osIsAbs: onPaths.isAbs,
    urlParse: templateFunction(['string'], (budget, text) => {
      budget.make(8)
      return parsed(text)
    }),
    urlJoin: templateFunction(['map'], (_, parts) => joined(parts)),
  }),
)
