/** The screen, as a tree of components: header and tabs, the current screen with the top layer over it, message and footer. */
import { Box } from 'ink';
import type { ReactNode } from 'react';
import { Footer } from './chrome/footer.js';
import { Header } from './chrome/header.js';
import { MessageLine } from './chrome/message.js';
import { tabLayout } from './chrome/tab-layout.js';
import { isDimmed, TopLayer } from './layers/layers.js';
import { Dimmed, Lines } from './parts/drawing.js';
import { Ends } from './parts/drawing.js';
import { strip } from './parts/strip.js';
import { OperatorScreen, OperatorsScreen, TrustScreen, TrustsScreen } from './screens/access.js';
import { AuditScreen } from './screens/audit.js';
import { CacheScreen } from './screens/cache.js';
import { EventsScreen } from './screens/events.js';
import { OverviewScreen } from './screens/overview.js';
import { ProjectScreen } from './screens/project.js';
import { ProjectsScreen } from './screens/projects.js';
import { TokenScreen } from './screens/token.js';
import { TokensScreen } from './screens/tokens.js';
import { TopScreen } from './screens/top.js';
import { areaOf, isTooSmall, MIN_SIZE } from './state/rows.js';
import { type Screen, type State, view } from './state/state.js';

const SCREENS: Record<Screen, (props: { state: State }) => ReactNode> = {
  overview: OverviewScreen,
  tokens: TokensScreen,
  token: TokenScreen,
  projects: ProjectsScreen,
  project: ProjectScreen,
  audit: AuditScreen,
  cache: CacheScreen,
  events: EventsScreen,
  top: TopScreen,
  operators: OperatorsScreen,
  operator: OperatorScreen,
  trusts: TrustsScreen,
  trust: TrustScreen,
};

export function App({ state }: { state: State }) {
  const { size } = state;
  if (isTooSmall(state)) {
    const words = `llmp needs ${MIN_SIZE.columns}x${MIN_SIZE.rows}, this is ${size.columns}x${size.rows}`;
    return <Lines of={[strip(words)]} />;
  }
  const Current = SCREENS[view(state).screen];
  return (
    <>
      <Header state={state} />
      <Tabs state={state} />
      <Box height={areaOf(state).rows} flexShrink={0}>
        <Dimmed value={isDimmed(state)}>
          <Current state={state} />
        </Dimmed>
        <TopLayer state={state} />
      </Box>
      <MessageLine state={state} />
      <Footer state={state} />
    </>
  );
}

function Tabs({ state }: { state: State }) {
  const { entries, right } = tabLayout(state);
  return <Ends left={entries.flatMap(({ line }) => line)} right={right} />;
}
