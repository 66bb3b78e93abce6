/// A running watch of a store. Releasing it ends the watch.
public protocol StoreWatch: AnyObject, Sendable {}
