/** Cases of the matrix of policies: headers. */
import { allow, type Case, deny, header, when } from './shape.ts'

export const headerCases: readonly Case[] = [
  {
    name: 'DENY by a header, also among several',
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
    name: 'ALLOW by a header, also among several',
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
    name: 'ALLOW by what a header is not, also among several',
    policies: [allow(when('request.headers[x-role]', [], ['guest']))],
    rows: [...header('x-role', [['guest'], 403], [['user', 'guest'], 403], [['user,guest'], 403], [['user'], 200]), { status: 200 }],
  },
  {
    name: 'headers with spaces around commas',
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
    name: 'a header that must be there',
    policies: [allow(when('request.headers[x-key]', ['*']))],
    rows: [...header('x-key', [['a'], 200], [['', 'a'], 200], [[', ,a'], 200], [[''], 403], [['', ''], 403], [[' , ,'], 403]), { status: 403 }],
  },
  {
    name: 'a header that must not be there, whatever it says',
    policies: [deny(when('request.headers[x-key]', ['*']))],
    rows: [...header('x-key', [['a'], 403], [['', 'a'], 403], [[''], 403], [['', ''], 403], [[','], 403]), { status: 200 }],
  },
  {
    name: 'a header without which nothing passes',
    policies: [deny(when('request.headers[x-key]', [], ['*']))],
    rows: [...header('x-key', [['a'], 200], [[''], 403], [[','], 403]), { status: 403 }],
  },
  {
    name: 'a header with which nothing passes',
    policies: [allow(when('request.headers[x-key]', [], ['*']))],
    rows: [...header('x-key', [['a'], 403], [[''], 403], [['', ''], 403]), { status: 200 }],
  },
]
