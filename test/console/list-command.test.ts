import { expect } from 'chai';
import { listCommand } from '../../console/query/command.js';

describe('command that lists what a screen shows', () => {
  it('has the filter as one word, the order and the context', () => {
    const given = { screen: 'tokens', filter: ' project:web expires:<2h ', sort: 'live', context: 'prod' } as const;
    expect(listCommand(given)).to.equal("llmp token list 'project:web expires:<2h' --sort live -c 'prod'");
  });

  it('has only what was given', () => {
    expect(listCommand({ screen: 'projects', filter: '' })).to.equal('llmp project list');
    expect(listCommand({ screen: 'audit', filter: 'actor:cli', sort: null, context: null })).to.equal(
      "llmp audit list 'actor:cli'",
    );
    expect(listCommand({ screen: 'events', filter: 'status:5xx' })).to.equal("llmp events tail 'status:5xx'");
  });

  it('quotes what a shell would evaluate', () => {
    expect(listCommand({ screen: 'tokens', filter: `it's "$(rm)" !x` })).to.equal(
      `llmp token list 'it'\\''s "$(rm)" !x'`,
    );
  });
});
