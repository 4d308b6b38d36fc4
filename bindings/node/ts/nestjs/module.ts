import {
  type DynamicModule,
  type FactoryProvider,
  type InjectionToken,
  Module,
  type Provider,
  Scope,
} from "@nestjs/common";
import { APP_FILTER, ModulesContainer } from "@nestjs/core";
import { outOfRange } from "../config";
import { adopt } from "./bind";
import { Circuits } from "./circuits";
import { clientOf } from "./client";
import { checkOrder } from "./cycle";
import { RefusalFilter } from "./filter";
import { CircuitBreakerHealthIndicator } from "./health";
import { Home, modulesThatSee, type Module as Seen } from "./home";
import { getCircuitBreakerToken, injectedNames } from "./inject";
import { methodsOf } from "./method";
import {
  type CheckedModuleOptions,
  type CircuitBreakerModuleAsyncOptions,
  type CircuitBreakerModuleOptions,
  type CircuitBreakerOptionsFactory,
  checkedAsyncOptions,
  checkedModuleOptions,
  isToken,
} from "./options";
import { CircuitBreakerService } from "./service";

/**
 * The circuits of an application. Imported by its root module, that is all the wiring: decorated methods are guarded, and a
 * request that a circuit refuses is answered with 503, `Retry-After` and a problem of RFC 9457.
 *
 * @example
 * ```ts
 * const module = CircuitBreakerModule.forRoot({
 *   defaults: { failureThreshold: 5 },
 *   circuits: { "Billing.charge": { openDurationMs: 10_000 } },
 * });
 * ```
 */
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: a module of Nest is a class, and its options are static methods of it.
export class CircuitBreakerModule {
  /**
   * With options that are known now. What is wrong with them, or with the policy of a decorated method, fails the boot: with a
   * `ConfigError` naming the option, the value and what is valid, or where it is a name or a clock with a `NameError` or `TimeError`.
   */
  static forRoot(options: CircuitBreakerModuleOptions = {}): DynamicModule {
    // By a function: Nest 10 would write out everything in a value, a Redis client too, to know the module again by it.
    const given = { provide: OPTIONS, useFactory: () => checkedModuleOptions(options, false) };
    return moduleOf([given], (options as CircuitBreakerModuleOptions | null)?.isGlobal);
  }

  /** With options that a factory gives, or a provider. What is wrong with them fails the boot, as with {@link forRoot}. */
  static forRootAsync(options: CircuitBreakerModuleAsyncOptions): DynamicModule {
    return moduleOf(asyncOptions(options), options?.isGlobal, options?.imports);
  }
}

const OPTIONS = Symbol("CircuitBreakerModuleOptions");
const ORDER = Symbol("whether CircuitBreakerModuleOptions can be there before the circuits");
const GIVEN = Symbol("what a factory of CircuitBreakerModuleOptions gives");
const IMPORT = Symbol("which import of CircuitBreakerModule this is");
let imports = 0;

function moduleOf(
  options: Provider[],
  isGlobal: boolean | undefined,
  imported: DynamicModule["imports"] = [],
): DynamicModule {
  imports += 1;
  const given = [
    ...options,
    // Two imports are two modules, though nothing in them may differ that Nest 10 looks at.
    { provide: IMPORT, useValue: imports },
    { provide: ORDER, useFactory: checkOptions, inject: [ModulesContainer, IMPORT] },
    { provide: Circuits, useFactory: circuitsOf, inject: [OPTIONS, ModulesContainer, IMPORT] },
    { provide: APP_FILTER, useClass: RefusalFilter },
    CircuitBreakerService,
    CircuitBreakerHealthIndicator,
  ];
  return {
    module: CircuitBreakerModule,
    global: isGlobal ?? true,
    imports: imported,
    // Looked at when the application is made: by then all classes have said what they want to have injected.
    get providers(): Provider[] {
      return [...given, ...injectedNames().map(breakerProvider)];
    },
    get exports(): InjectionToken[] {
      const breakers = injectedNames().map(getCircuitBreakerToken);
      return [Circuits, CircuitBreakerService, CircuitBreakerHealthIndicator, ...breakers];
    },
  };
}

function breakerProvider(name: string): FactoryProvider {
  const useFactory = (circuits: Circuits) => circuits.get(name, undefined, "@InjectCircuitBreaker");
  // Transient: made for who has it injected. The names are those of all classes there are, in other applications too.
  return { provide: getCircuitBreakerToken(name), useFactory, inject: [Circuits], scope: Scope.TRANSIENT };
}

/** The circuits of an application, once their client is there; with what decorated methods say of them. */
async function circuitsOf(
  options: CheckedModuleOptions,
  container: ModulesContainer,
  which: number,
): Promise<Circuits> {
  if (isToken(options.redis)) checkNeeded(options.redis, container, which, "redis");
  const circuits = new Circuits(options, await clientOf(options.redis, container));
  const isOurs = isImport(which);
  const home = new Home(() => modulesThatSee(container, isOurs), circuits);
  try {
    for (const of of home.classes()) for (const method of methodsOf(of)) method.declare(circuits, of);
  } catch (error) {
    home.leave();
    throw error;
  }
  home.watchFactories((product) => adopt(product, circuits));
  circuits.home = home;
  return circuits;
}

/** Nothing waits for this, so that it is found out before anything waits for ever. */
function checkOptions(container: ModulesContainer, which: number): void {
  checkNeeded(OPTIONS, container, which, "options");
}

function checkNeeded(token: InjectionToken, container: ModulesContainer, which: number, field: string): void {
  const isOurs = isImport(which);
  const own = [...container.values()].find(isOurs) as Seen;
  const isCircuits = ({ module, wrapper }: { module: Seen; wrapper: object }) =>
    isOurs(module) && module.providers.get(Circuits) === wrapper;
  checkOrder(token, own, container, isCircuits, field);
}

function isImport(which: number): (module: Seen) => boolean {
  return ({ providers }) => providers.get(IMPORT)?.instance === which;
}

function asyncOptions(options: unknown): Provider[] {
  const checked = {
    provide: OPTIONS,
    useFactory: (given: unknown) => checkedModuleOptions(given, true),
    inject: [GIVEN],
  };
  try {
    return [checked, ...givenBy(checkedAsyncOptions(options))];
  } catch (error) {
    const fail = () => {
      throw error;
    };
    return [{ provide: OPTIONS, useFactory: fail }];
  }
}

function givenBy({ useFactory, inject = [], useClass, useExisting }: CircuitBreakerModuleAsyncOptions): Provider[] {
  if (useFactory !== undefined) return [{ provide: GIVEN, useFactory, inject }];
  const token = useClass ?? (useExisting as InjectionToken);
  const given = (factory: CircuitBreakerOptionsFactory) => {
    if (typeof factory?.createCircuitBreakerOptions === "function") return factory.createCircuitBreakerOptions();
    const way = useClass === undefined ? "useExisting" : "useClass";
    throw outOfRange(way, "a class with a method `createCircuitBreakerOptions`", factory);
  };
  const provider = { provide: GIVEN, useFactory: given, inject: [token] };
  return useClass === undefined ? [provider] : [{ provide: useClass, useClass }, provider];
}
