/** Writes `docs/kinds.md` from the declarations of the kinds, or with `--check` says whether it is as they are. */
import { readFileSync, writeFileSync } from 'node:fs'
import { kinds } from '../src/config/kinds.ts'
import { meshForm, networksForm } from '../src/config/mesh-config.ts'
import type { Form } from '../src/config/shape.ts'

const file = new URL('kinds.md', import.meta.url)

/** Rows of the fields of a form. A form that was there before is not listed again: `known` has where. */
function rowsOf(form: Form, path: string, known: Map<Form, string>): string[] {
  if (form.type === 'list') return rowsOf(form.item, `${path}[]`, known)
  if (form.type === 'map') return rowsOf(form.item, `${path}{}`, known)
  if (form.type !== 'record') return []
  return Object.entries(form.fields).flatMap(([name, field]) => {
    const at = path === '' ? name : `${path}.${name}`
    if (field.unused !== undefined) return [`| \`${at}\` | no effect yet: ${field.unused} |`]
    const inner = innermost(field.form)
    const before = known.get(inner)
    if (before !== undefined) return [`| \`${at}\` | works, field by field as \`${before}\` |`]
    if (inner.type === 'record') known.set(inner, at)
    return [`| \`${at}\` | works${field.required ? ', required' : ''} |`, ...rowsOf(field.form, at, known)]
  })
}

const innermost = (form: Form): Form => (form.type === 'list' || form.type === 'map' ? innermost(form.item) : form)

const table = (form: Form): string => ['| Field | Effect |', '| --- | --- |', ...rowsOf(form, '', new Map())].join('\n')

function page(): string {
  const all = [...kinds.values()]
  const overview = all.map(({ name, group, versions, without }) => {
    const effect = without === undefined ? `works, [field by field](#${name.toLowerCase()})` : `no effect yet: ${without}`
    return `| ${name} | \`${group}.mesh.io\` ${versions.join(', ')} | ${effect} |`
  })
  const sections = all
    .filter(({ without }) => without === undefined)
    .map(({ name, group, spec }) => {
      const unknown = group === 'security' ? 'Unknown fields are faults.' : 'Unknown fields are told in the log and left out.'
      return `## ${name}\n\nFields of \`spec\`. ${unknown}\n\n${table(spec.form)}`
    })
  return `${[
    '# Kinds and fields',
    'Which kinds of configuration and which of their fields work. Made by `npm run kinds` from their declarations (`src/config/kinds/`); `npm run check` holds it to them.\nWhoever sets a field that has no effect is told in the log, once for each object and field, and at `/debug/noeffectz`. `istio.io` is taken for `mesh.io` in groups.',
    `| Kind | Group and versions | Effect |\n| --- | --- | --- |\n${overview.join('\n')}`,
    ...sections,
    `## Mesh configuration\n\nFields of the file of \`--meshConfig\`. Unknown fields are told in the log and left out.\n\n${table(meshForm)}`,
    `## Networks\n\nFields of the file of \`--networksConfig\`.\n\n${table(networksForm)}`,
  ].join('\n\n')}\n`
}

const made = page()
if (!process.argv.includes('--check')) writeFileSync(file, made)
else if (readFileSync(file, 'utf8') !== made) {
  console.error('docs/kinds.md is not as the kinds are declared: npm run kinds writes it')
  process.exitCode = 1
}
