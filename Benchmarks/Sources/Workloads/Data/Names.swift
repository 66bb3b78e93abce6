import Baselines
import CoreDataRouting
import ObjectGraph
import StoreInterface

/// Reads the names that the command line accepts.
public enum Names {
    public static var stacks: [String] { ContextStack.allCases.map(\.rawValue) }
    public static var stores: [String] { StoreKind.allCases.map(\.rawValue) }
    public static var routings: [String] { Routing.allCases.map(\.rawValue) }
}

/// The versions of the C libraries that affect the figures.
public enum Libraries {
    public static var versions: [String: String] { ["LMDB": RawLMDB.version, "SQLite": RawSQLite.version] }
}
