import { type DynamicModule, type FactoryProvider, type InjectionToken, Module, type Provider } from "@nestjs/common";
import { APP_FILTER, ModulesContainer } from "@nestjs/core";
import { outOfRange } from "../config";
import { ConfigError } from "../error";
import { adopt } from "./bind";
import { Circuits } from "./circuits";
import { clientOf } from "./client";
import { RefusalFilter } from "./filter";
import { CircuitBreakerHealthIndicator } from "./health";
import { Home } from "./home";
import { getCircuitBreakerToken, injectedNames } from "./inject";
import { methodsOf } from "./method";
import {
  type CircuitBreakerModuleAsyncOptions,
  type CircuitBreakerModuleOptions,
  type CircuitBreakerOptionsFactory,
  checkedGlobal,
  checkedModuleOptions,
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
   * With options that are known now.
   *
   * @throws {@link ConfigError} for `isGlobal`; whatever else is wrong with the options, or with the policy of a decorated method,
   * fails the boot with one, naming the option, the value and what is valid
   */
  static forRoot(options: CircuitBreakerModuleOptions = {}): DynamicModule {
    const isGlobal = checkedGlobal((options as CircuitBreakerModuleOptions | null)?.isGlobal);
    // By a function: Nest 10 would write out everything in a value, a Redis client too, to know the module again by it.
    return moduleOf([{ provide: OPTIONS, useFactory: () => options }], isGlobal);
  }

  /**
   * With options that a provider gives, or a factory of its own.
   *
   * @throws {@link ConfigError} unless there is one of `useFactory`, `useClass` and `useExisting`; and as {@link forRoot}
   */
  static forRootAsync(options: CircuitBreakerModuleAsyncOptions): DynamicModule {
    const isGlobal = checkedGlobal(options.isGlobal);
    return moduleOf(optionProviders(options), isGlobal, options.imports);
  }
}

const OPTIONS = Symbol("CircuitBreakerModuleOptions");
const IMPORT = Symbol("which import of CircuitBreakerModule this is");
const WAYS = ["useFactory", "useClass", "useExisting"] as const;
let imports = 0;

function moduleOf(options: Provider[], isGlobal: boolean, imported: DynamicModule["imports"] = []): DynamicModule {
  imports += 1;
  const given = [
    ...options,
    // Two imports are two modules, though nothing in them may differ that Nest 10 looks at.
    { provide: IMPORT, useValue: imports },
    { provide: Circuits, useFactory: circuitsOf, inject: [OPTIONS, ModulesContainer] },
    { provide: APP_FILTER, useClass: RefusalFilter },
    CircuitBreakerService,
    CircuitBreakerHealthIndicator,
  ];
  return {
    module: CircuitBreakerModule,
    global: isGlobal,
    imports: imported,
    // Looked at when the application is made: by then all classes have said what they want to have injected.
    get providers(): Provider[] {
      return [...given, ...injectedNames().map(breakerProvider)];
    },
    get exports(): InjectionToken[] {
      return [
        Circuits,
        CircuitBreakerService,
        CircuitBreakerHealthIndicator,
        ...injectedNames().map(getCircuitBreakerToken),
      ];
    },
  };
}

function breakerProvider(name: string): FactoryProvider {
  const useFactory = (circuits: Circuits) => circuits.get(name);
  return { provide: getCircuitBreakerToken(name), useFactory, inject: [Circuits] };
}

/** The circuits of an application, once their client is there; with what decorated methods say of them. */
async function circuitsOf(given: unknown, container: ModulesContainer): Promise<Circuits> {
  const options = checkedModuleOptions(given);
  const circuits = new Circuits(options, await clientOf(options.redis, container));
  const home = new Home(container, circuits);
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

function optionProviders({
  useFactory,
  inject,
  useClass,
  useExisting,
  ...given
}: CircuitBreakerModuleAsyncOptions): Provider[] {
  const ways = { useFactory, useClass, useExisting };
  const one = WAYS.filter((way) => ways[way] !== undefined);
  if (one.length !== 1) {
    const shown = one.length === 0 ? "none of them" : one.join(" and ");
    throw new ConfigError(
      `\`forRootAsync\` must be given one of ${WAYS.join(", ")}, got ${shown}`,
      "forRootAsync",
      shown,
    );
  }
  const unknown = Object.keys(given).find((name) => name !== "imports" && name !== "isGlobal");
  if (unknown !== undefined) {
    const valid = [...WAYS, "inject", "imports", "isGlobal"].join(", ");
    throw new ConfigError(`\`${unknown}\` is not an option; valid are ${valid}`, unknown);
  }
  if (useFactory !== undefined) {
    if (typeof useFactory !== "function") throw outOfRange("useFactory", "a function", useFactory);
    return [{ provide: OPTIONS, useFactory, inject: inject ?? [] }];
  }
  if (useClass !== undefined) {
    return [{ provide: useClass, useClass }, fromFactory(useClass)];
  }
  return [fromFactory(useExisting as InjectionToken)];
}

function fromFactory(token: InjectionToken): FactoryProvider {
  const useFactory = (factory: CircuitBreakerOptionsFactory) => factory.createCircuitBreakerOptions();
  return { provide: OPTIONS, useFactory, inject: [token] };
}
