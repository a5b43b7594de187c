/** Root certificates for tests. Each is generated once per process. */
import { execFileSync } from 'node:child_process'
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AuthorityRecord } from '../../src/ca/state.ts'
import { fingerprintOf } from '../../src/identity/pem.ts'

/** A root with its key. */
export interface MadeRoot {
  readonly record: AuthorityRecord
  readonly key: KeyObject
}

const made = new Map<string, MadeRoot>()

/** Returns a self-signed root with the organization `name`, valid for 30 days. Further calls with the same name return the same root. */
export function rootOf(name: string): MadeRoot {
  const known = made.get(name)
  if (known) return known
  const root = inDirectory((dir) => {
    const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')]
    const options = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '30', '-subj', `/O=${name}`]
    openssl('req', ...options, '-keyout', key, '-out', cert)
    const certificate = readFileSync(cert, 'utf8')
    const record: AuthorityRecord = {
      id: fingerprintOf(certificate),
      certificate,
      intermediates: '',
      root: certificate,
      cross: '',
      origin: 'made',
    }
    return { record, key: createPrivateKey(readFileSync(key)) }
  })
  made.set(name, root)
  return root
}

/** Returns a cross-certificate for the name and key of a root, signed by another root and valid for `days` days. PEM. */
export function signedBy(signer: MadeRoot, { record, key }: MadeRoot, days = 20): string {
  return inDirectory((dir) => {
    const path = (name: string) => join(dir, name)
    const pem = (one: KeyObject) => one.export({ type: 'pkcs8', format: 'pem' })
    writeFileSync(path('own.key'), pem(key))
    writeFileSync(path('ca.key'), pem(signer.key))
    writeFileSync(path('ca.pem'), signer.record.certificate)
    writeFileSync(path('own.pem'), record.certificate)
    writeFileSync(path('ext'), 'basicConstraints=critical,CA:TRUE\n')
    openssl('x509', '-x509toreq', '-in', path('own.pem'), '-signkey', path('own.key'), '-out', path('csr'))
    const by = ['-CA', path('ca.pem'), '-CAkey', path('ca.key'), '-CAcreateserial', '-days', String(days), '-extfile', path('ext')]
    openssl('x509', '-req', '-in', path('csr'), ...by, '-out', path('cross.pem'))
    return readFileSync(path('cross.pem'), 'utf8')
  })
}

function inDirectory<T>(make: (dir: string) => T): T {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-root-'))
  try {
    return make(dir)
  } finally {
    rmSync(dir, { recursive: true })
  }
}

const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' })
