/** The functions of sprig, which users of templates know from charts (docs/templates.md, T8, T9). */
import { type Functions, type TemplateFunction, templateFunction } from '../function.ts'
import { fail, kindName, typeName, type Value } from '../values.ts'
import { isDeepEqual, isEmpty } from './casts.ts'
import { certificateFunctions } from './certificates.ts'
import { chanceFunctions } from './chance.ts'
import { type Clock, dateFunctions } from './dates.ts'
import { dictFunctions } from './dicts.ts'
import { encodingFunctions, type Random } from './encodings.ts'
import { keyFunctions, type NewKey } from './keys.ts'
import { listFunctions } from './lists.ts'
import { numberFunctions } from './numbers.ts'
import { passwordFunctions } from './passwords.ts'
import { pathFunctions } from './paths.ts'
import { regexFunctions } from './regex.ts'
import { semver, semverCompare } from './semver.ts'
import { stringFunctions } from './strings.ts'

/** Functions that are not there, with the reason. A template that calls one ends in an error that says it. */
const absent: Readonly<Record<string, readonly string[]>> = {
  'templates do not see the environment of the control plane': ['env', 'expandenv'],
  'templates do not look up names': ['getHostByName'],
}

const absentFunctions: readonly [string, TemplateFunction][] = Object.entries(absent).flatMap(([reason, names]) =>
  names.map((name): [string, TemplateFunction] => [name, templateFunction(['...any'], () => fail(`there is no such function: ${reason}`))]),
)

const coalesced = (values: readonly Value[]): Value => values.find((value) => !isEmpty(value)) ?? null

const plain = {
  default: templateFunction(['any', '...any'], (_, otherwise, ...given) => (isEmpty(given[0] ?? null) ? otherwise : (given[0] ?? null))),
  empty: templateFunction(['any'], (_, value) => isEmpty(value)),
  coalesce: templateFunction(['...any'], (_, ...values) => coalesced(values)),
  all: templateFunction(['...any'], (_, ...values) => !values.some(isEmpty)),
  any: templateFunction(['...any'], (_, ...values) => values.some((value) => !isEmpty(value))),
  ternary: templateFunction(['any', 'any', 'bool'], (_, one, other, isTrue) => (isTrue ? one : other)),
  typeOf: templateFunction(['any'], (_, value) => typeName(value)),
  typeIs: templateFunction(['string', 'any'], (_, name, value) => typeName(value) === name),
  typeIsLike: templateFunction(['string', 'any'], (_, name, value) => typeName(value) === name || typeName(value) === `*${name}`),
  kindOf: templateFunction(['any'], (_, value) => kindName(value)),
  kindIs: templateFunction(['string', 'any'], (_, name, value) => kindName(value) === name),
  deepEqual: templateFunction(['any', 'any'], (budget, one, other) => isDeepEqual(one, other, budget)),
  semver: templateFunction(['string'], (_, version) => semver(version)),
  semverCompare: templateFunction(['string', 'string'], (_, constraint, version) => semverCompare(constraint, version)),
}

/** What the functions of time, chance and keys read. */
export interface Surroundings {
  readonly clock: Clock
  readonly random: Random
  readonly newKey: NewKey
}

/** Returns the functions by name. */
export const sprigFunctions = ({ clock, random, newKey }: Surroundings): Functions =>
  new Map<string, TemplateFunction>([
    ...absentFunctions,
    ...Object.entries(plain),
    ...stringFunctions,
    ...listFunctions,
    ...dictFunctions,
    ...numberFunctions,
    ...regexFunctions,
    ...pathFunctions,
    ...dateFunctions(clock),
    ...encodingFunctions(random),
    ...chanceFunctions(random),
    ...passwordFunctions(random),
    ...keyFunctions(newKey),
    ...certificateFunctions({ clock, random, newKey }),
  ])
