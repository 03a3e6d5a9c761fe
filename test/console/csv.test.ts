import { expect } from 'chai';
import { csvRows, CsvProblem } from '../../console/csv.js';
import { TableText } from '../../console/table-file.js';

const cells = (text: string) => csvRows(text, 1_000).map((row) => row.cells);

describe('CSV', () => {
  for (const [what, text, rows] of [
    ['of one cell', 'a', [['a']]],
    [
      'with LF',
      'a,b\n1,2\n',
      [
        ['a', 'b'],
        ['1', '2'],
      ],
    ],
    [
      'with CRLF',
      'a,b\r\n1,2\r\n',
      [
        ['a', 'b'],
        ['1', '2'],
      ],
    ],
    [
      'without a line end at its end',
      'a,b\r\n1,2',
      [
        ['a', 'b'],
        ['1', '2'],
      ],
    ],
    [
      'with a byte order mark',
      '\ufeffa,b\n1,2\n',
      [
        ['a', 'b'],
        ['1', '2'],
      ],
    ],
    ['with a byte order mark and quotes', '\ufeff"a",b\n', [['a', 'b']]],
    ['with separators in quotes', '"a,b",c\n', [['a,b', 'c']]],
    ['with quotes in quotes', '"say ""hi""",""""\n', [['say "hi"', '"']]],
    [
      'with line ends in quotes',
      '"a\r\nb","c\nd"\n1,2\n',
      [
        ['a\r\nb', 'c\nd'],
        ['1', '2'],
      ],
    ],
    [
      'with empty cells',
      ',,\n"",a,\n',
      [
        ['', '', ''],
        ['', 'a', ''],
      ],
    ],
    ['with empty lines', 'a\n\n\r\nb\n\n', [['a'], ['b']]],
    ['with spaces, which belong to the cell', ' a , b \n', [[' a ', ' b ']]],
    [
      'with semicolons',
      'a;b\n1;"x,y"\n',
      [
        ['a', 'b'],
        ['1', 'x,y'],
      ],
    ],
    [
      'with tabs',
      'a\tb\n1\t2,3\n',
      [
        ['a', 'b'],
        ['1', '2,3'],
      ],
    ],
    ['that is empty', '', []],
  ] as const) {
    it(`${what} is read`, () => {
      expect(cells(text)).to.deep.equal(rows);
    });
  }

  it('names the line that each row begins in', () => {
    expect(csvRows('a\n"1\n2\n3"\n\nb\n', 10).map(({ line }) => line)).to.deep.equal([1, 2, 6]);
  });

  it('stops after the given number of rows', () => {
    expect(csvRows('a\nb\nc"', 2)).to.have.length(2);
  });

  for (const [what, text, line, cell] of [
    ['a quote that is not closed', 'a\nb,"c\nd\n', 2, 2],
    ['text after a quote', 'a\n"b"c\n', 2, 1],
    ['a quote within a cell', 'a,b\nx,5" pipe\n', 2, 2],
  ] as const) {
    it(`says where there is ${what}`, () => {
      expect(() => csvRows(text, 10))
        .to.throw(CsvProblem)
        .that.includes({ line, cell });
    });
  }

  it('reads what it writes', () => {
    let seed = 7;
    const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
    const letters = ['a', ',', '"', ' ', ';', 'é', '\u{1f600}', 'x'];
    for (let round = 0; round < 300; round += 1) {
      const rows = Array.from({ length: 1 + random(4) }, () =>
        Object.fromEntries(
          ['one', 'two', 'three'].map((field) => [
            field,
            Array.from({ length: 1 + random(6) }, () => letters[random(letters.length)]).join(''),
          ]),
        ),
      );
      const text = new TableText('csv', ['one', 'two', 'three']);
      expect(cells(text.begin + text.rows(rows) + text.end)).to.deep.equal([
        ['one', 'two', 'three'],
        ...rows.map((row) => Object.values(row)),
      ]);
    }
  });

  it('writes no formula that a spreadsheet would evaluate', () => {
    const text = new TableText('csv', ['name']);
    for (const name of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', ' =1']) {
      expect(cells(`name\n${text.rows([{ name }])}`)[1]?.[0]).to.match(/^'|^\\/);
    }
  });

  it('writes JSON that can be read, with any number of rows', () => {
    for (const rows of [[], [{ a: 1 }], [{ a: 1 }, { a: null }]]) {
      const text = new TableText('json', ['a']);
      expect(JSON.parse(text.begin + text.rows(rows) + text.end)).to.deep.equal(rows);
    }
  });
});
