/** Unmodified agents, in the versions that `environments.ts` lists, through the daemon, under `llmp run`, and directly with the provider. */
import { expect } from 'chai';
import { NotChecked } from '../support/registry-environment.js';
import { type Agent, AGENTS } from './agents.js';
import { EXCEPTIONS, GOAL, slowness, WATCHED_SECONDS } from './goal.js';
import { PROOF } from './model.js';
import { differences, normalised } from './normalise.js';
import { Turns } from './turns.js';
import { type Job, type Refused, REFUSALS, type RefusalId, Scene, type ThroughDaemon } from './scene.js';

/** An agent waits for its interpreter and between attempts: one more than there are processors of a small machine. */
const AT_ONCE = 3;
const IDS = Object.keys(REFUSALS) as RefusalId[];

/** Addresses of providers and of what agents use in place of one. An agent that is pointed at the daemon has nothing to do there. */
const PROVIDERS = /^(?:api\.openai\.com|api\.anthropic\.com|generativelanguage\.googleapis\.com|api\.cline\.bot):/;

interface Performance {
  direct: Job;
  through: ThroughDaemon;
  underRun: ThroughDaemon | null;
  refused: Map<RefusalId, Refused>;
}

describe('agents', function () {
  this.timeout(600_000);
  const turns = new Turns(AT_ONCE);
  const unchecked = new Set<string>();
  const performances = new Map<Agent, Promise<Performance | Error>>();
  const programs = new Map<Agent, string>();
  /** What each refusal cost. */
  const figures: string[] = [];
  let scene: Scene;

  async function play(agent: Agent): Promise<Performance> {
    const bin = await agent.environment.prepare();
    programs.set(agent, bin);
    const [direct, through, underRun, ...refused] = await Promise.all([
      turns.take(() => scene.directly(agent, bin)),
      turns.take(() => scene.through(agent, bin)),
      agent.runOptions ? turns.take(() => scene.underRun(agent, bin)) : null,
      ...IDS.map(async (id) => [id, await turns.take(() => refusedOnce(agent, id))] as const),
    ]);
    return { direct, through, underRun, refused: new Map(refused) };
  }

  const exceptionFor = (agent: Agent, id: RefusalId) =>
    EXCEPTIONS.find((exception) => exception.agent === agent.title && exception.refusals.includes(id));

  function refusedOnce(agent: Agent, id: RefusalId): Promise<Refused> {
    const seconds = WATCHED_SECONDS * (exceptionFor(agent, id) ? 1 : slowness());
    return scene.refused(agent, programs.get(agent) ?? '', id, seconds * 1_000);
  }

  before(async () => {
    scene = await Scene.open();
    for (const agent of AGENTS)
      performances.set(
        agent,
        play(agent).catch((error: unknown) => error as Error),
      );
  });
  after(async () => {
    await Promise.all(performances.values());
    await scene.close();
    console.log(figures.join('\n'));
  });

  for (const agent of AGENTS) {
    describe(agent.title, () => {
      let played: Performance;

      before(async function () {
        const outcome = await performances.get(agent);
        if (outcome instanceof NotChecked) {
          const line = `NOT CHECKED: agents of ${agent.environment.what}: ${outcome.message}`;
          if (!unchecked.has(line)) console.log(line);
          unchecked.add(line);
          this.skip();
        }
        if (outcome === undefined || outcome instanceof Error) throw outcome ?? new Error('not played');
        played = outcome;
        for (const [id, { seconds, requests, showsMessage }] of played.refused) {
          const time = seconds === null ? 'does not end' : `${seconds.toFixed(1)} s`;
          figures.push(
            `    ${agent.title}, ${id}: ${time}, requests: ${requests}, message: ${showsMessage ? 'yes' : 'no'}`,
          );
        }
      });

      it('does its job directly with the provider', () => {
        expect(played.direct.proof, played.direct.output).to.equal(PROOF.content);
      });

      it('does its job through the daemon as its page says, with the same requests to the provider', () => {
        const { direct, through } = played;
        expect(through.proof, through.output).to.equal(PROOF.content);
        const [asked, askedDirectly] = [through, direct].map(({ account, home }) => normalised(account.seen, home));
        expect(differences(askedDirectly ?? [], asked ?? []).join('\n')).to.equal('');
      });

      it('has its usage recorded as the provider reported it', () => {
        const { usage, account } = played.through;
        expect(usage).to.deep.equal(account.reported);
      });

      if (agent.runOptions) {
        it('reaches the daemon under `llmp run`, whatever keys its user has, and leaves no token behind', () => {
          const { proof, output, usage, account, filesWithToken, elsewhere } = played.underRun!;
          expect(proof, output).to.equal(PROOF.content);
          expect(usage).to.deep.equal(account.reported);
          expect(filesWithToken).to.deep.equal([]);
          expect(elsewhere.filter((host) => PROVIDERS.test(host))).to.deep.equal([]);
        });
      }

      for (const id of IDS) {
        const exception = exceptionFor(agent, id);
        if (!exception) {
          it(`${id}: it ends at once, and shows the message`, async () => {
            let refused = played.refused.get(id)!;
            const misses = () => (refused.seconds ?? 0) > GOAL.seconds * slowness() || refused.requests > GOAL.requests;
            // The best of three counts: opencode may ask for a title once more if it is slow.
            for (let again = 0; again < 2 && refused.seconds !== null && misses(); again++) {
              refused = await turns.take(() => refusedOnce(agent, id));
            }
            const { seconds, requests, showsMessage, output } = refused;
            expect(showsMessage, output).to.equal(true);
            expect(requests, 'requests').to.be.within(1, GOAL.requests);
            expect(seconds ?? Infinity, 'seconds').to.be.at.most(GOAL.seconds * slowness());
          });
        } else {
          it(`${id}: an exception, because ${exception.why}`, () => {
            const { seconds, requests, showsMessage, output } = played.refused.get(id)!;
            expect(showsMessage, output).to.equal(exception.showsMessage);
            expect(requests, 'requests').to.be.within(1, exception.requests);
            if (exception.seconds === null) expect(seconds, 'seconds').to.equal(null);
            else expect(seconds ?? Infinity, 'seconds').to.be.within(GOAL.seconds, exception.seconds);
          });
        }
      }
    });
  }
});
