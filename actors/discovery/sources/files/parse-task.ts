/** Pool task: parses one large configuration file. */

import { readOptOuts } from '../../../../src/config/opt-outs.ts'
import { type ParsedFile, parseConfigFile } from '../../../../src/config/parse.ts'
import { PatternChecks } from '../../../../src/config/patterns.ts'
import { meshNames } from '../../../../src/names/mesh-names.ts'

/** A file to parse. */
export interface ParseTask {
  readonly name: string
  readonly content: string
  readonly domain: string
  /** Names of the policy checks that are switched off, separated by commas. */
  readonly optOuts: string
  readonly revision: string
}

/** Runs on a thread of the pool. */
export default function parse(task: ParseTask): ParsedFile {
  return parseConfigFile(task.name, task.content, meshNames(task.domain), new PatternChecks(), readOptOuts(task.optOuts), task.revision)
}
