import Floors
import ObjectGraph
import StoreInterface

/// What the command line accepts.
public enum Names {
    public static var stacks: [String] { ContextStack.allCases.map(\.rawValue) }
    public static var stores: [String] { StoreKind.allCases.map(\.rawValue) }
    public static var routings: [String] { Routing.allCases.map(\.rawValue) }
}

/// The C libraries that the figures depend on.
public enum Libraries {
    public static var versions: [String: String] { ["LMDB": RawLMDB.version, "SQLite": RawSQLite.version] }
}
