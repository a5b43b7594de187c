/** Pool task: parses one large configuration file. */

import { readOptOuts } from '../../../../src/config/opt-outs.ts'
import { type ParsedFile, parseConfigFile } from '../../../../src/config/parse.ts'
import { PatternChecks } from '../../../../src/config/patterns.ts'
import { meshNames } from '../../../../src/names/mesh-names.ts'

/** What to parse. */
export interface ParseTask {
  readonly name: string
  readonly content: string
  readonly domain: string
  /** Checks of policies that are left out, separated by commas. */
  readonly optOuts: string
}

/** Runs on a thread of the pool. */
export default function parse(task: ParseTask): ParsedFile {
  return parseConfigFile(task.name, task.content, meshNames(task.domain), new PatternChecks(), readOptOuts(task.optOuts))
}
