/** Names of the secrets that gateways are served: `kubernetes://<name>`, `kubernetes://<namespace>/<name>`, each also with `-cacert` (docs/resources.md, K1). */

const scheme = 'kubernetes://'
const authoritiesSuffix = '-cacert'

/** The resource with the certificate and key of a `credentialName`. A name that has the scheme already is one. */
export function certificateName(credentialName: string): string {
  return credentialName.startsWith(scheme) ? credentialName : scheme + credentialName
}

/** The resource with the authorities that belong to a `credentialName`. */
export function authoritiesName(credentialName: string): string {
  const name = certificateName(credentialName)
  return name.endsWith(authoritiesSuffix) ? name : name + authoritiesSuffix
}

/** The secret that a resource is made from, and which part of it. */
export interface NamedSecret {
  readonly name: string
  /** `authorities` come from the Secret `<name>-cacert`, else from the Secret `<name>`. */
  readonly part: 'pair' | 'authorities'
}

/** What a resource of this name is made from, for a reader in a namespace. Undefined when it is of another namespace, or no name of a secret. */
export function readSecretName(resource: string, namespace: string): NamedSecret | undefined {
  if (!resource.startsWith(scheme)) return undefined
  const path = resource.slice(scheme.length)
  const slash = path.indexOf('/')
  if (slash >= 0 && path.slice(0, slash) !== namespace) return undefined
  const name = path.slice(slash + 1)
  if (!nameSyntax.test(name)) return undefined
  const isOfAuthorities = name.endsWith(authoritiesSuffix) && name.length > authoritiesSuffix.length
  return isOfAuthorities ? { name: name.slice(0, -authoritiesSuffix.length), part: 'authorities' } : { name, part: 'pair' }
}

/** Names of the Secrets in which what a resource is made from is looked for, in this order. */
export function secretsOf({ name, part }: NamedSecret): readonly string[] {
  return part === 'pair' ? [name] : [name + authoritiesSuffix, name]
}

const nameSyntax = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/
