/**
 * Measures the minimum cost of reading configuration: a process that reads the files of a folder and parses them with the YAML library that
 * the server uses. It checks nothing and keeps every value, as the server does.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'

const folder = process.argv[2] as string
const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
const values = files.map(({ name }) => parseAllDocuments(readFileSync(join(folder, name), 'utf8')).map((document) => document.toJS()))
if (values.length === 0) process.exitCode = 1
