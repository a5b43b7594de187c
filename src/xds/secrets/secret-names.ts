/**
 * Names of the secret resources of gateways: `kubernetes://<name>`, `kubernetes://<namespace>/<name>`, each also with `-cacert`
 * (docs/resources.md, K1).
 */

import { isObjectName } from '../../names/object-names.ts'

const scheme = 'kubernetes://'
const authoritiesSuffix = '-cacert'

/** Returns the name of the resource with the certificate and key of a `credentialName`. A name with the scheme is returned unchanged. */
export function certificateName(credentialName: string): string {
  return credentialName.startsWith(scheme) ? credentialName : scheme + credentialName
}

/** Returns the name of the resource with the certificate authorities of a `credentialName`. */
export function authoritiesName(credentialName: string): string {
  const name = certificateName(credentialName)
  return name.endsWith(authoritiesSuffix) ? name : name + authoritiesSuffix
}

/** The Secret that a resource is made from, and the part of it that is used. */
export interface NamedSecret {
  readonly name: string
  /** `authorities` are looked up in the Secret `<name>-cacert`, then in the Secret `<name>`. */
  readonly part: 'pair' | 'authorities'
}

/**
 * Parses the name of a secret resource for a reader in a namespace. Returns undefined for a Secret of another namespace and for a name that
 * is no name of a secret.
 */
export function readSecretName(resource: string, namespace: string): NamedSecret | undefined {
  if (!resource.startsWith(scheme)) return undefined
  const path = resource.slice(scheme.length)
  const slash = path.indexOf('/')
  if (slash >= 0 && path.slice(0, slash) !== namespace) return undefined
  const name = path.slice(slash + 1)
  if (!isObjectName(name)) return undefined
  const isOfAuthorities = name.endsWith(authoritiesSuffix) && name.length > authoritiesSuffix.length
  return isOfAuthorities ? { name: name.slice(0, -authoritiesSuffix.length), part: 'authorities' } : { name, part: 'pair' }
}

/** Returns the names of the Secrets in which a resource is looked up, in order. */
export function secretsOf({ name, part }: NamedSecret): readonly string[] {
  return part === 'pair' ? [name] : [name + authoritiesSuffix, name]
}
