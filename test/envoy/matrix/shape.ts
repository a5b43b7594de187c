/** What a case of the matrix is made of. */

/** What a request carries; `$name` in a header stands for a token of that name. */
export interface Row {
  readonly method?: string
  readonly path?: string
  readonly host?: string
  readonly headers?: readonly (readonly [string, string])[]
  /** Name of a token in `Authorization: Bearer`. */
  readonly token?: string
  readonly status: number
}

/** A set of policies in force at once, as kind and spec. */
export interface Case {
  readonly name: string
  readonly policies: readonly {
    readonly kind: 'AuthorizationPolicy' | 'RequestAuthentication'
    readonly spec: object
    readonly annotations?: object
  }[]
  /** `pathNormalization` of the mesh, when it is not the default. */
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

/** Rows for one thing that varies. */
export const rows = <T>(values: readonly (readonly [T, number])[], row: (value: T) => Omit<Row, 'status'>): Row[] =>
  values.map(([value, status]) => ({ ...row(value), status }))
export const paths = (...values: (readonly [string, number])[]) => rows(values, (path) => ({ path }))
export const hosts = (...values: (readonly [string, number])[]) => rows(values, (host) => ({ host }))
export const tokens = (...values: (readonly [string | undefined, number])[]) => rows(values, (token) => (token === undefined ? {} : { token }))
export const header = (name: string, ...values: (readonly [readonly string[], number])[]) =>
  rows(values, (list) => ({ headers: list.map((value) => [name, value] as const) }))
