/** Cases of the policy matrix: headers. */
import { allow, type Case, deny, header, when } from './shape.ts'

export const headerCases: readonly Case[] = [
  {
    name: 'DENY by a header value, alone or among several',
    policies: [deny(when('request.headers[x-role]', ['admin', 'root*']))],
    rows: [
      ...header(
        'x-role',
        [['admin'], 403],
        [['user', 'admin'], 403],
        [['admin', 'user'], 403],
        [['user,admin'], 403],
        [['user, admin'], 403],
        [['rooted'], 403],
        [['user', 'rooty'], 403],
        [['Admin'], 200],
        [['admins'], 200],
        [['user'], 200],
        [['user', 'guest'], 200],
      ),
      ...header('X-ROLE', [['admin'], 403]),
      { status: 200 },
    ],
  },
  {
    name: 'ALLOW by a header value, alone or among several',
    policies: [allow(when('request.headers[x-role]', ['admin', '*-lead']))],
    rows: [
      ...header(
        'x-role',
        [['admin'], 200],
        [['team-lead'], 200],
        [['user', 'admin'], 200],
        [['admin', 'user'], 200],
        [['user,admin'], 200],
        [['x'], 403],
      ),
      { status: 403 },
    ],
  },
  {
    name: 'ALLOW by notValues of a header, alone or among several',
    policies: [allow(when('request.headers[x-role]', [], ['guest']))],
    rows: [...header('x-role', [['guest'], 403], [['user', 'guest'], 403], [['user,guest'], 403], [['user'], 200]), { status: 200 }],
  },
  {
    name: 'DENY by a header value in a list with spaces around commas',
    policies: [deny(when('request.headers[x-role]', ['admin']))],
    rows: header(
      'x-role',
      [['user,  admin'], 403],
      [['user,\tadmin'], 403],
      [['user ,admin'], 403],
      [['admin  ,user'], 403],
      [['user , admin , x'], 403],
      [['user,  x'], 200],
      [['user, admins'], 200],
    ),
  },
  {
    name: 'ALLOW by presence of a header: an empty one is absent',
    policies: [allow(when('request.headers[x-key]', ['*']))],
    rows: [...header('x-key', [['a'], 200], [['', 'a'], 200], [[', ,a'], 200], [[''], 403], [['', ''], 403], [[' , ,'], 403]), { status: 403 }],
  },
  {
    name: 'DENY by presence of a header: an empty one is present',
    policies: [deny(when('request.headers[x-key]', ['*']))],
    rows: [...header('x-key', [['a'], 403], [['', 'a'], 403], [[''], 403], [['', ''], 403], [[','], 403]), { status: 200 }],
  },
  {
    name: 'DENY by absence of a header: an empty one is absent',
    policies: [deny(when('request.headers[x-key]', [], ['*']))],
    rows: [...header('x-key', [['a'], 200], [[''], 403], [[','], 403]), { status: 403 }],
  },
  {
    name: 'ALLOW by absence of a header: an empty one is present',
    policies: [allow(when('request.headers[x-key]', [], ['*']))],
    rows: [...header('x-key', [['a'], 403], [[''], 403], [['', ''], 403]), { status: 200 }],
  },
]
