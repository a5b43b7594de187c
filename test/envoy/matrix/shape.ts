/** The types of the policy matrix, and functions that build its cases. */

/** A request and its expected status. `$name` in the path or a header is replaced by the token of that name. */
export interface Row {
  readonly method?: string
  readonly path?: string
  readonly host?: string
  readonly headers?: readonly (readonly [string, string])[]
  /** Name of the token that is sent in `Authorization: Bearer`. */
  readonly token?: string
  readonly status: number
}

/** A set of policies that are in force together, and the requests that are sent to them. */
export interface Case {
  readonly name: string
  readonly policies: readonly {
    readonly kind: 'AuthorizationPolicy' | 'RequestAuthentication'
    readonly spec: object
    readonly annotations?: object
  }[]
  /** The mesh's `pathNormalization`. Undefined: DEFAULT. */
  readonly normalization?: string
  readonly rows: readonly Row[]
}

export const issuers = { one: 'https://one.example', two: 'two@issuer/with/slashes', unserved: 'https://unserved.example' }

export const allow = (...rules: object[]) => ({ kind: 'AuthorizationPolicy' as const, spec: { action: 'ALLOW', rules } })
export const deny = (...rules: object[]) => ({ kind: 'AuthorizationPolicy' as const, spec: { action: 'DENY', rules } })
export const to = (operation: object) => ({ to: [{ operation }] })
export const from = (source: object) => ({ from: [{ source }] })
export const when = (key: string, values: string[], notValues?: string[]) => ({
  when: [{ key, ...(values.length > 0 ? { values } : {}), ...(notValues ? { notValues } : {}) }],
})
export const jwt = (...jwtRules: object[]) => ({ kind: 'RequestAuthentication' as const, spec: { jwtRules } })
export const one = { issuer: issuers.one, jwks: '$one' }
export const two = { issuer: issuers.two, jwks: '$two' }

/** Returns rows that differ in one value only. */
export const rows = <T>(values: readonly (readonly [T, number])[], row: (value: T) => Omit<Row, 'status'>): Row[] =>
  values.map(([value, status]) => ({ ...row(value), status }))
export const paths = (...values: (readonly [string, number])[]) => rows(values, (path) => ({ path }))
export const hosts = (...values: (readonly [string, number])[]) => rows(values, (host) => ({ host }))
export const tokens = (...values: (readonly [string | undefined, number])[]) => rows(values, (token) => (token === undefined ? {} : { token }))
export const header = (name: string, ...values: (readonly [readonly string[], number])[]) =>
  rows(values, (list) => ({ headers: list.map((value) => [name, value] as const) }))
