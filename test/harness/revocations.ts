/** Makes certificate revocation lists with openssl. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Returns the revocation list of an authority, valid for a day, with these certificates in it. Everything is PEM. */
export function revocationList(authority: { readonly chain: string; readonly key: string }, revoked: readonly string[]): string {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-crl-'))
  const path = (name: string) => join(dir, name)
  const write = (name: string, content: string) => {
    writeFileSync(path(name), content)
    return path(name)
  }
  try {
    write('index', '')
    const config = write('config', `[ca]\ndefault_ca = own\n[own]\ndatabase = ${path('index')}\ndefault_md = sha256\ndefault_crl_days = 1\n`)
    const options = ['ca', '-config', config, '-cert', write('ca.pem', authority.chain), '-keyfile', write('ca.key', authority.key)]
    const openssl = (...args: string[]) => execFileSync('openssl', [...options, ...args], { stdio: 'ignore' })
    for (const certificate of revoked) openssl('-revoke', write('revoked.pem', certificate))
    openssl('-gencrl', '-out', path('crl.pem'))
    return readFileSync(path('crl.pem'), 'utf8')
  } finally {
    rmSync(dir, { recursive: true })
  }
}
