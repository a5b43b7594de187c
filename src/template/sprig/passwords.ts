/** Hashes of passwords, and passwords that are derived from another one. They take long by design. */
import { createHmac, scryptSync } from 'node:crypto'
import { encodeBase64, hashSync } from 'bcryptjs'
import type { Budget } from '../budget.ts'
import { type Functions, templateFunction } from '../function.ts'
import { bytesOf, fail } from '../values.ts'
import type { Random } from './encodings.ts'

/** What a hash takes, in milliseconds as they are assumed. */
const taken = { bcrypt: 100, scrypt: 300 } as const

/** The cost of `bcrypt`, which templates cannot choose, and the most bytes of a password that it reads. */
const [cost, longest] = [10, 72]

function bcrypt(budget: Budget, random: Random, password: string): string {
  if (bytesOf(password).length > longest) return `failed to encrypt string with bcrypt: bcrypt: password length exceeds ${longest} bytes`
  if (!password.isWellFormed()) return fail('the password is not UTF-8')
  budget.slow(taken.bcrypt)
  return hashSync(password, `$2a$${cost}$${encodeBase64([...random(16)], 16)}`)
}

const masterSeed = Buffer.from('com.lyndir.masterpassword')

/** The forms of passwords by type: each letter stands for one of {@link letters}. */
const forms: Readonly<Record<string, readonly string[]>> = {
  maximum: ['anoxxxxxxxxxxxxxxxxx', 'axxxxxxxxxxxxxxxxxno'],
  long: [
    ...['CvcvnoCvcvCvcv', 'CvcvCvcvnoCvcv', 'CvcvCvcvCvcvno', 'CvccnoCvcvCvcv', 'CvccCvcvnoCvcv', 'CvccCvcvCvcvno', 'CvcvnoCvccCvcv'],
    ...['CvcvCvccnoCvcv', 'CvcvCvccCvcvno', 'CvcvnoCvcvCvcc', 'CvcvCvcvnoCvcc', 'CvcvCvcvCvccno', 'CvccnoCvccCvcv', 'CvccCvccnoCvcv'],
    ...['CvccCvccCvcvno', 'CvcvnoCvccCvcc', 'CvcvCvccnoCvcc', 'CvcvCvccCvccno', 'CvccnoCvcvCvcc', 'CvccCvcvnoCvcc', 'CvccCvcvCvccno'],
  ],
  medium: ['CvcnoCvc', 'CvcCvcno'],
  short: ['Cvcn'],
  basic: ['aaanaaan', 'aannaaan', 'aaannaaa'],
  pin: ['nnnn'],
}
const letters: Readonly<Record<string, string>> = {
  C: 'BCDFGHJKLMNPQRSTVWXYZ',
  v: 'aeiou',
  c: 'bcdfghjklmnpqrstvwxyz',
  a: 'AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz',
  n: '0123456789',
  o: "@&%?,=[]_:-+*$#!'^~;()/.",
  x: 'AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()',
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** Returns a text with its length before it. */
const counted = (text: string): Buffer => Buffer.concat([uint32(bytesOf(text).length), bytesOf(text)])

/** Derives the password of a user for a site (the algorithm of Master Password, version 2). */
function derived(budget: Budget, counter: number, type: string, password: string, user: string, site: string): string {
  const known = Object.hasOwn(forms, type) ? forms[type] : undefined
  if (!known) return `cannot find password template ${type}`
  budget.slow(taken.scrypt)
  const salt = Buffer.concat([masterSeed, counted(user)])
  const key = scryptSync(bytesOf(password), salt, 64, { N: 32_768, r: 8, p: 2, maxmem: 64 * 1024 * 1024 })
  const [first = 0, ...others] = createHmac('sha256', key)
    .update(Buffer.concat([masterSeed, counted(site), uint32(counter)]))
    .digest()
  const form = known[first % known.length] as string
  return [...form].map((letter, at) => (letters[letter] as string)[(others[at] as number) % (letters[letter] as string).length]).join('')
}

/** The functions by name. */
export const passwordFunctions = (random: Random): Functions =>
  new Map(
    Object.entries({
      bcrypt: templateFunction(['string'], (budget, password) => bcrypt(budget, random, password)),
      htpasswd: templateFunction(['string', 'string'], (budget, user, password) =>
        user.includes(':') ? `invalid username: ${user}` : `${user}:${bcrypt(budget, random, password)}`,
      ),
      derivePassword: templateFunction(['uint32', 'string', 'string', 'string', 'string'], (budget, counter, type, password, user, site) =>
        derived(budget, counter, type, password, user, site),
      ),
    }),
  )
