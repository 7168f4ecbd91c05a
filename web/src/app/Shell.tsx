import { Anchor } from "@mantine/core";
import { NavLink, Outlet, ScrollRestoration, useNavigation } from "react-router";
import { AuthBanner } from "./AuthBanner";
import { ColorSchemeButton } from "./ColorSchemeButton";
import { Logo } from "./Logo";
import classes from "./Shell.module.css";

const sections = [
  { to: "/sessions", label: "Sessions" },
  { to: "/evals", label: "Evals" },
  { to: "/alerts", label: "Alerts" },
];

export function Shell() {
  const navigation = useNavigation();
  return (
    <>
      <a className={classes.skip} href="#main">
        Skip to the content
      </a>
      <header className={classes.header}>
        <NavLink to="/sessions" className={classes.brand} aria-label="Sidetone, to the sessions">
          <Logo />
          <span className={classes.brandName}>Sidetone</span>
        </NavLink>
        <nav className={classes.nav} aria-label="Sections">
          {sections.map((section) => (
            <NavLink key={section.to} to={section.to} className={classes.link}>
              {section.label}
            </NavLink>
          ))}
        </nav>
        <div className={classes.tools}>
          <Anchor href="/docs" size="sm" className={classes.docs}>
            API
          </Anchor>
          <ColorSchemeButton />
        </div>
        <div className={classes.progress} data-active={navigation.state === "loading" || undefined} aria-hidden />
      </header>
      <AuthBanner />
      <main id="main" className={classes.main} tabIndex={-1}>
        <Outlet />
      </main>
      <ScrollRestoration getKey={(location) => location.pathname + location.search} />
    </>
  );
}
