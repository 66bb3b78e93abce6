// Model files for Apple's systems use Foundation and Observation without a further import.
@_exported import Foundation
// In a file with Swift's feature `MemberImportVisibility`, members of a module are visible if one of its names is. The expansion of
// `@Model` uses members of these two modules.
@_exported import struct ObjectGraph.ModelPlaceholder
@_exported import Observation
@_exported import enum StoreModel.IndexKind
