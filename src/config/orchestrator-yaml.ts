/**
 * What the orchestrator and its command line read otherwise than YAML 1.2 (`sigs.k8s.io/yaml`, after YAML 1.1): flags such as `yes` and `off`,
 * numbers with a leading zero, which are octal, with underscores, and with a sign before their base.
 */
import type { ScalarTag } from 'yaml'

const yes = /^(?:y|Y|yes|Yes|YES|on|On|ON)$/
const no = /^(?:n|N|no|No|NO|off|Off|OFF)$/
const octal = /^[-+]?0_*[0-7][0-7_]*$/
const based = /^[-+]?0(?:[bB][01_]*[01]|[oO][0-7_]*[0-7]|[xX][0-9a-fA-F_]*[0-9a-fA-F])_*$/
const decimal = /^[-+]?(?:[1-9][0-9_]*|0_+)$/
const float = /^[-+]?(?:\.[0-9][0-9_]*|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?$/

const flag = (test: RegExp, value: boolean): ScalarTag => ({ tag: 'tag:yaml.org,2002:bool', default: true, test, resolve: () => value })

function number(test: RegExp, tag: 'int' | 'float', read: (digits: string) => number): ScalarTag {
  const resolve = (text: string) => {
    const bare = text.replaceAll('_', '').replace(/^[-+]/, '')
    return text.startsWith('-') ? -read(bare) : read(bare)
  }
  return { tag: `tag:yaml.org,2002:${tag}`, default: true, test, resolve }
}

/** The tags of plain scalars, which come before those of YAML 1.2. */
export const orchestratorTags: readonly ScalarTag[] = [
  flag(yes, true),
  flag(no, false),
  number(octal, 'int', (digits) => Number(`0o${digits}`)),
  number(based, 'int', (digits) => Number(digits.toLowerCase())),
  number(decimal, 'int', Number),
  number(float, 'float', Number),
]

const unlike =
  /(?<![^\s:,[{-])(?:[yY]|[yY]es|YES|[oO]n|ON|[nN]|[nN]o|NO|[oO]ff|OFF|[-+]?0[0-9_]+|[-+]?0[bBoOxX][\da-fA-F_]+|[-+]?[\d.]+_[\d_.eE+-]*)(?![^\s:,\]}])/

/** Whether a text may have a scalar that these tags read otherwise. Most have none, and are read faster without them. */
export const mayDiffer = (text: string): boolean => unlike.test(text)
