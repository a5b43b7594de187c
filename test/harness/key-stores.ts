/** Key stores by programs that tests did not write: OpenSSL, and the keytool of Java. */
import { execFileSync } from 'node:child_process'

/** Whether Java's keytool is installed. Throws when it is not under `CI=true`. */
export function hasKeytool(): boolean {
  try {
    execFileSync('keytool', ['-help'], { stdio: 'ignore' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || process.env.CI === 'true') throw error
    return false
  }
}

/** Runs keytool in English and returns what it prints. Throws with that when it fails. */
export function keytool(...args: readonly string[]): string {
  return execFileSync('keytool', ['-J-Duser.language=en', ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** Runs OpenSSL and returns what it prints. Throws when it fails. */
export function openssl(...args: readonly string[]): string {
  return execFileSync('openssl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** Returns the certificates in a text in PEM, without line breaks. */
export function certificatesIn(text: string): string[] {
  return [...text.matchAll(/-----BEGIN CERTIFICATE-----([^-]*)-----END CERTIFICATE-----/g)].map(([, base64 = '']) => base64.replace(/\s/g, ''))
}
